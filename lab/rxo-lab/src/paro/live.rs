//! Measures a live server: `rxo serve` behind `rxo card` on one core, and Linux clients that download whole
//! files on another.
//!
//! One server is measured in all ways: requests to its control socket change the way between two windows,
//! while the clients continue. So ways are compared within a second or two, with the same connections.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rxo::Reading;
use rxo_console::numbers::ratio;
use rxo_control::{Request, Session};
use rxo_demo::machine::Cores;
use rxo_demo::running::Running;
use rxo_peers::Folder;
use rxo_testbed::{CpuMeter, Lab, LabOptions};
use serde::Serialize;
use serde_json::Value;

use super::case::{PROFILED_BYTES, Way};
use crate::card;
use crate::downloads::{Clients, Load, Progress};
use crate::files;
use crate::process::{self, Process};

/// The ways between which a running server can switch.
pub(super) const WAYS: [Way; 3] = [Way::Stack, Way::Records, Way::Batches];

/// The extent of the measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveScale {
    pub(super) clients: usize,
    pub(super) files: u32,
    pub(super) window_ms: u64,
}

/// Measurements of one way during a window of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Window {
    /// Processor time of the server per request, in microseconds.
    pub(super) us_a_request: f64,
    pub(super) gbit_per_s: f64,
    /// Received packets, nearly all of them pure ACKs, per data segment sent.
    pub(super) acks_a_segment: f64,
    pub(super) requests: f64,
}

/// A server under load. Dropping this ends it.
pub(super) struct Live {
    // Fields are dropped in this order: clients first.
    clients: Clients,
    server: Process,
    session: Session,
    meter: CpuMeter,
    card: Running<Reading>,
    window: Duration,
    _lab: Lab,
    _folder: Folder,
}

/// All counters at one instant.
struct Moment {
    at: Instant,
    cpu: rxo_testbed::CpuReading,
    progress: Progress,
    packets_in: u64,
}

impl Live {
    /// Starts the server, the card and the clients, and waits until every client has received data.
    pub(super) fn start(scale: LiveScale) -> Result<Self> {
        let LiveScale { clients: count, files, window_ms } = scale;
        let cores = Cores::choose();
        let folder = Folder::new("paro-live")?;
        let (socket, control) = (folder.file("card.sock"), folder.file("control.sock"));
        let served = folder.file("files");
        std::fs::create_dir(&served).context("the directory of the files")?;
        files::make(&served, files, PROFILED_BYTES)?;
        let peer_core = cores.sender;
        let lab = Lab::through_with(LabOptions { peer_core, ..LabOptions::default() })?;
        let card = card::start(&lab, (socket.clone(), card::MODERATION), cores.sender)?;
        let command = serve((&served, count), &lab, [&socket, &control])?;
        let mut server = spawn_on(cores.receiver, command)?;
        let _addresses: Value = server.line()?;
        let meter = CpuMeter::new().process("the server", server.id());
        let session = Session::open(&control)?;
        let address = (lab.host_address(), PORT).into();
        let load = Load { clients: count, files, file_bytes: PROFILED_BYTES, core: cores.sender };
        let clients = Clients::start(lab.peer(), address, load)?;
        let until = Instant::now() + TIMEOUT;
        while clients.progress()?.served < count as u64 {
            ensure!(Instant::now() < until, "not every client got an answer");
            thread::sleep(Duration::from_millis(10));
        }
        let window = Duration::from_millis(window_ms);
        Ok(Self { clients, server, session, meter, card, window, _lab: lab, _folder: folder })
    }

    /// Measures a window of `way`.
    pub(super) fn measure(&mut self, way: Way) -> Result<Window> {
        let bypass = if way == Way::Records { "record" } else { "bypass" };
        self.ask("policy", None, &[("pure_acks", bypass)])?;
        let modules = if way == Way::Batches { "on" } else { "off" };
        self.ask("fast-path", Some(modules), &[])?;
        thread::sleep(SETTLE);
        let before = self.moment()?;
        thread::sleep(self.window);
        let after = self.moment()?;
        let bytes = after.progress.bytes - before.progress.bytes;
        let requests = bytes as f64 / PROFILED_BYTES as f64;
        let used = after.cpu.since(&before.cpu);
        let cpu_us: f64 = used.parts.iter().map(|(_, time)| time.as_secs_f64() * 1e6).sum();
        let seconds = (after.at - before.at).as_secs_f64();
        let packets = after.packets_in - before.packets_in;
        Ok(Window {
            us_a_request: ratio(cpu_us, requests),
            gbit_per_s: ratio(bytes as f64 * 8.0 / 1e9, seconds),
            acks_a_segment: ratio(packets as f64, bytes as f64 / SEGMENT_BYTES),
            requests,
        })
    }

    fn moment(&mut self) -> Result<Moment> {
        let counters = self.ask("counters", None, &[])?;
        let number = |at: &str| {
            counters.pointer(at).and_then(Value::as_u64).with_context(|| format!("no counter {at}"))
        };
        Ok(Moment {
            packets_in: number("/nic_in/packets")?,
            progress: self.clients.progress()?,
            cpu: self.meter.read()?,
            at: Instant::now(),
        })
    }

    fn ask(&mut self, name: &str, value: Option<&str>, with: &[(&str, &str)]) -> Result<Value> {
        let text = |text: &str| text.to_owned();
        let with = with.iter().map(|(key, value)| (text(key), text(value))).collect();
        let request = Request { name: text(name), value: value.map(text), with };
        match self.session.ask(&request)?.result {
            Ok(answer) => Ok(answer),
            Err(why) => bail!("the server refuses {name}: {why}"),
        }
    }

    /// Ends the server. Fails if a client received wrong bytes.
    pub(super) fn finish(self) -> Result<()> {
        self.clients.finish()?;
        let _totals: Value = self.server.interrupt()?;
        self.card.finish()?;
        Ok(())
    }
}

/// Returns the command of `rxo serve` for a directory and a number of clients.
fn serve(
    (served, clients): (&Path, usize),
    lab: &Lab,
    [socket, control]: [&Path; 2],
) -> Result<Command> {
    let mut command = Command::new(process::program()?);
    command.args(["rxo", "serve", "--json"]).arg(served).args([
        format!("--nic=virtio:{}", socket.display()),
        format!("--ip={}/24", lab.host_address()),
        format!("--port={PORT}"),
        format!("--clients={}", 2 * clients),
        format!("--per-peer={}", 2 * clients),
        format!("--control={}", control.display()),
    ]);
    Ok(command)
}

/// Starts `command` on `core`. A process inherits the core of the thread that starts it.
fn spawn_on(core: Option<usize>, mut command: Command) -> Result<Process> {
    let start = move || {
        core.map_or(Ok(()), rxo_testbed::pin_to_core)?;
        Process::spawn("rxo serve", &mut command)
    };
    thread::spawn(start).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

const PORT: u16 = 80;
/// Payload bytes of a full segment with timestamps, for an MTU of 1,500.
const SEGMENT_BYTES: f64 = 1_448.0;
/// Pause between a change of the way and its window.
const SETTLE: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(60);
