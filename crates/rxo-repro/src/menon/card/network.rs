//! One measurement: a wire, a card on it, the receiver behind the card, and Linux senders.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rxo::live::{Card, Device, DeviceOptions, Event, Outcome, run_card};
use rxo_driver::GuestOptions;
use rxo_lab::traffic::{BulkConfig, Outgoing};
use rxo_lab::{Lab, LabOptions};

use super::callgrind::{self, Counts};
use super::case::{Application, Case};
use super::plan::Plan;
use super::receiver::{Measured, PORT};

/// One transfer for its time, and one for its instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) timed: Measured,
    pub(super) counted: Measured,
    pub(super) counts: Counts,
    /// Segments that the senders sent again, in both.
    pub(super) retransmissions: u64,
}

/// Measures one host.
///
/// # Errors
/// When the network cannot be built, a process ends early, or anything is lost or wrong.
pub(super) fn measure(case: Case, plan: &Plan) -> Result<Sample> {
    let folder = Folder::new()?;
    let (timed, first) = transfer(case, plan, &folder, Tool::None)?;
    let (counted, second) = transfer(case, plan, &folder, Tool::Callgrind)?;
    let counts = callgrind::read(&folder.profile())?;
    Ok(Sample { timed, counted, counts, retransmissions: first + second })
}

impl Sample {
    /// Instructions for a packet.
    pub(super) fn per_packet(&self) -> f64 {
        ratio(self.counts.iter().sum(), self.counted.packets)
    }

    /// Instructions for a byte of payload.
    pub(super) fn per_byte(&self) -> f64 {
        ratio(self.counts.iter().sum(), self.counted.bytes)
    }

    /// What a second of processor time receives.
    pub(super) fn scaled_gbit_per_s(&self) -> f64 {
        rxo_console::numbers::ratio(self.timed.bytes as f64 * 8.0 / 1e9, self.timed.cpu_s)
    }
}

pub(super) fn ratio(sum: f64, count: u64) -> f64 {
    rxo_console::numbers::ratio(sum, count as f64)
}

/// Under what the receiver runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    None,
    Callgrind,
}

impl Tool {
    /// The pause of a worker that finds nothing. In time, that of a card's notifications. What is counted are no
    /// pauses, but the turns that find nothing before them, so these are made rare.
    const fn pause(self) -> Duration {
        match self {
            Self::None => MODERATION,
            Self::Callgrind => Duration::from_millis(4),
        }
    }
}

/// Transfers once. Returns what the receiver measured, and how many segments were sent again.
fn transfer(case: Case, plan: &Plan, folder: &Folder, tool: Tool) -> Result<(Measured, u64)> {
    let peer_core = plan.cores.sender;
    let lab = Lab::through_with(LabOptions { peer_core, ..LabOptions::default() })?;
    let card = CardThread::start(&lab, folder.socket(), plan.cores.sender)?;
    let bytes = match tool {
        Tool::None => plan.timed_bytes,
        Tool::Callgrind => plan.counted_bytes,
    };
    let each = bytes / case.connections as u64;
    let mut arguments = arguments(case, plan, folder, &lab, each * case.connections as u64);
    arguments.push(format!("--pause-us={}", tool.pause().as_micros()));
    let program = env::current_exe().context("cannot find the program of this process")?;
    let mut command = match tool {
        Tool::None => Command::new(program),
        Tool::Callgrind => callgrind::command(&program, &folder.profile()),
    };
    let mut receiver = Receiver::start(command.args(arguments))?;
    let config = BulkConfig {
        connections: case.connections,
        bytes_per_connection: Some(each),
        sender_core: plan.cores.sender,
        ..BulkConfig::default()
    };
    let address = SocketAddr::new(lab.host_address(), PORT);
    let started = Outgoing::start(lab.peer(), address, &config);
    // If the receiver has failed, its own words say more than those of the senders.
    let measured = receiver.finish()?;
    let sent = started?.stop()?;
    card.finish()?;
    Ok((measured, sent.retransmitted_segments))
}

fn arguments(case: Case, plan: &Plan, folder: &Folder, lab: &Lab, bytes: u64) -> Vec<String> {
    let (stack, socket) = (case.stack, folder.socket());
    let mut line = format!(
        "repro menon receiver --address {} --poll-frames {} --connections {} --bytes {bytes}",
        lab.host_address(),
        case.poll_frames,
        case.connections,
    );
    if let Some(limit) = stack.aggregation_limit {
        line += &format!(" --limit {limit}");
    }
    if let Some(core) = plan.cores.receiver {
        line += &format!(" --core {core}");
    }
    let flags = [
        (stack.ack_offload, " --ack-offload"),
        (case.application == Application::Threads, " --threads"),
    ];
    flags.iter().filter(|(is_set, _)| *is_set).for_each(|(_, flag)| line += flag);
    let mut all: Vec<String> = line.split(' ').map(str::to_owned).collect();
    all.extend(["--socket".to_owned(), socket.display().to_string()]);
    all
}

/// `rxo card` on a thread, on the sender's core. Dropping it stops it.
struct CardThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<rxo_lab::Result<Result<Outcome>>>>,
}

impl CardThread {
    fn start(lab: &Lab, socket: PathBuf, core: Option<usize>) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, wait) = std::sync::mpsc::channel();
        let seen = Arc::clone(&stop);
        let thread = lab.host().spawn("rxo-card", move || {
            if let Some(core) = core {
                rxo_lab::pin_to_core(core)?;
            }
            let devices = open(&socket)?;
            // The receiver is gone only when the command is at its end.
            _ = ready.send(());
            let card = Card { validates: true, expands: true, report_every: None };
            // Its only notices are that the receiver has come and gone.
            Ok(run_card(devices, card, &seen, |_: Event<'_>| {})?)
        })?;
        let card = Self { stop, thread: Some(thread) };
        if wait.recv().is_err() {
            return Err(card.finish().err().unwrap_or_else(|| anyhow!("the card did not start")));
        }
        Ok(card)
    }

    fn finish(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("the card has ended before")?;
        let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(ended??.result?)
    }
}

impl Drop for CardThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // After a failure elsewhere, which is reported; this one no longer matters.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

fn open(socket: &Path) -> Result<(Device, Device)> {
    let guest = GuestOptions {
        aggregates: false,
        ack_templates: true,
        moderation: MODERATION,
        ..GuestOptions::default()
    };
    let options = DeviceOptions { bring_up: true, guest, ..DeviceOptions::default() };
    let wire = format!("packet:{}", Lab::WIRE_INTERFACE).parse()?;
    let ring = format!("vhost:{}", socket.display()).parse()?;
    Ok((Device::open(&wire, options)?, Device::open(&ring, options)?))
}

/// The process that receives. Dropping it ends it.
struct Receiver {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Receiver {
    /// Starts it, and waits until it listens.
    fn start(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start the receiver")?;
        let lines = child.stdout.take().context("the receiver has no output")?;
        let mut receiver = Self { child, lines: BufReader::new(lines) };
        let ready: String = receiver.line()?;
        debug_assert_eq!(ready, "ready");
        Ok(receiver)
    }

    /// Waits for its end, and returns what it measured.
    fn finish(&mut self) -> Result<Measured> {
        let measured = self.line()?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the receiver ended with {status}: {}", self.complaint());
        }
        Ok(measured)
    }

    fn line<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        if line.is_empty() {
            bail!("the receiver did not finish: {}", self.complaint());
        }
        serde_json::from_str(&line).context("the receiver printed no JSON")
    }

    /// The last line that it said.
    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(said) = &mut self.child.stderr {
            // What cannot be read says nothing.
            _ = said.read_to_string(&mut text);
        }
        text.trim_end().lines().last().unwrap_or("it said nothing").to_owned()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // It has ended, unless something else failed.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A directory for the socket and the profile, which goes when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = env::temp_dir().join(format!("rxo-menon-{}", std::process::id()));
        fs::create_dir_all(&path)
            .with_context(|| format!("cannot make the directory {}", path.display()))?;
        Ok(Self(path))
    }

    fn socket(&self) -> PathBuf {
        self.0.join("card.sock")
    }

    fn profile(&self) -> PathBuf {
        self.0.join("callgrind.out")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A directory that is left behind harms nobody.
        _ = fs::remove_dir_all(&self.0);
    }
}

/// As `rx-usecs` of a card.
const MODERATION: Duration = Duration::from_micros(50);
