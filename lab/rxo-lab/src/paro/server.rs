//! The server as a separate process: the host and an HTTP server ([`app`](super::app)) on one thread, and the
//! modelled [`clients`](super::clients) on another, at the other end of a ring in shared memory.
//!
//! The threads alternate, on a clock that advances by the same time per turn, so each run executes the same.
//! Callgrind counts the server's work inside [`counted_step`] in the middle turns, or only the host's
//! receiving in these turns.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rxo::Instant;
use rxo::live::{Device, DeviceOptions};
use rxo_driver::{DeviceSink, GuestOptions};
use rxo_host::{Host, HostConfig, IpCidr};
use rxo_peers::Folder;
use serde::{Deserialize, Serialize};

use super::app::App;
use super::case::Case;
use super::clients::{Clients, Habits, Tally};
use crate::card;
use crate::source::{Clock, Shaped};

/// The extent of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Scale {
    pub(crate) clients: u16,
    pub(crate) files: u32,
    /// Bytes that clients download before counting begins; the next field is for the counted part.
    pub(crate) warm_bytes: u64,
    pub(crate) counted_bytes: u64,
    /// Time between two turns, in microseconds, like the interval of a card that moderates its notifications.
    pub(crate) turn_us: u64,
}

/// The counts of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Served {
    #[serde(flatten)]
    pub(super) tally: Tally,
    /// ACKs that the fast path consumed; the next field counts its calls of connections.
    pub(super) consumed: u64,
    pub(super) calls: u64,
    pub(super) turns: u64,
}

/// The parameters of the process under callgrind.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Parameters {
    pub(super) case: Case,
    pub(super) scale: Scale,
}

/// Serves, and prints the counts as a line of JSON.
pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let Parameters { case, scale } = *parameters;
    let folder = Folder::new("paro-ring")?;
    let socket = folder.file("ring.sock");
    let files = (scale.files, case.file_bytes);
    let habits = Habits { clients: scale.clients, acks: case.acks, files };
    let ring = format!("vhost:{}", socket.display()).parse()?;
    let (instants, steps) = channel();
    let (tallies, results) = channel();
    let is_connected = AtomicBool::new(false);
    let served = thread::scope(|scope| -> Result<Served> {
        let (is_ready, ready) = channel();
        let (ring, is_connected) = (&ring, &is_connected);
        let clients = scope.spawn(move || {
            let guest = GuestOptions { aggregates: false, ..GuestOptions::default() };
            let device = Device::open(ring, DeviceOptions { guest, ..DeviceOptions::default() })?;
            _ = is_ready.send(());
            be_clients(Clients::new(habits, device), is_connected, &steps, &tallies)
        });
        // If the channel is closed, the thread's own error explains why.
        _ = ready.recv();
        let served = Serving::new((case, scale.turn_us), &format!("virtio:{}", socket.display()))
            .inspect(|_| is_connected.store(true, Ordering::SeqCst))
            .and_then(|serving| serving.run(scale, (instants, &results)));
        is_connected.store(true, Ordering::SeqCst);
        match clients.join() {
            Ok(clients) => clients.and(served),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    rxo_console::output::json_line(&served)
}

/// Runs the clients' thread: one step for each instant received.
fn be_clients(
    mut clients: Clients,
    is_connected: &AtomicBool,
    steps: &Receiver<Instant>,
    tallies: &Sender<Tally>,
) -> Result<()> {
    while !is_connected.load(Ordering::SeqCst) {
        // Answers the setup messages of the ring's other end.
        clients.device.source.receive(&mut Vec::new(), 1)?;
        thread::sleep(SHORT);
    }
    while let Ok(now) = steps.recv() {
        let tally = clients.step(now)?;
        if tallies.send(tally).is_err() {
            break;
        }
    }
    Ok(())
}

/// The host and the HTTP server on the measured thread.
struct Serving {
    host: Host<Shaped, DeviceSink>,
    app: App,
    now: Clock,
    turn: Duration,
    turns: u64,
    /// The turn in which clients last received data.
    last_progress: u64,
}

impl Serving {
    fn new((case, turn_us): (Case, u64), ring: &str) -> Result<Self> {
        let device = card::host_side(&ring.parse()?)?;
        let network = IpCidr::new(SERVER.into(), 24)?;
        let mut config = HostConfig { mac: Some(MAC), ..HostConfig::new(vec![network], [1, 2]) };
        case.way.apply(&mut config);
        let now = Clock::default();
        now.set(Instant::from_micros(1_000_000));
        let source = Shaped::stamped(device.source, now.clone());
        let host = Host::new(source, device.sink, config)?;
        let listener = host.handle().listen(SocketAddr::from((SERVER, PORT)), BACKLOG)?;
        let app = App::new(listener, case.file_bytes)?;
        Ok(Self {
            host,
            app,
            now,
            turn: Duration::from_micros(turn_us),
            turns: 0,
            last_progress: 0,
        })
    }

    /// Alternates with the clients until the counted bytes have been served.
    fn run(
        mut self,
        scale: Scale,
        (instants, results): (Sender<Instant>, &Receiver<Tally>),
    ) -> Result<Served> {
        let mut before = Tally::default();
        while before.bytes < scale.warm_bytes {
            self.step()?;
            before = self.exchange(&instants, results, before.bytes)?;
        }
        window_begins();
        let (fast, turns) = (self.host.counters().fast, self.turns);
        let mut now = before;
        while now.bytes - before.bytes < scale.counted_bytes {
            counted_step(&mut self)?;
            now = self.exchange(&instants, results, now.bytes)?;
        }
        let after = self.host.counters().fast;
        Ok(Served {
            tally: now.since(before),
            consumed: after.consumed - fast.consumed,
            calls: after.calls - fast.calls,
            turns: self.turns - turns,
        })
    }

    /// Runs a step of the clients. Fails if they receive nothing for a second of virtual time.
    fn exchange(
        &mut self,
        instants: &Sender<Instant>,
        results: &Receiver<Tally>,
        bytes: u64,
    ) -> Result<Tally> {
        self.now.set(self.now.get() + self.turn);
        self.turns += 1;
        // If the clients have ended, their own error explains why.
        _ = instants.send(self.now.get());
        let tally = results.recv().context("the clients have ended")?;
        if tally.bytes > bytes {
            self.last_progress = self.turns;
        }
        ensure!(self.turns - self.last_progress < TIMEOUT_TURNS, "nothing arrives");
        Ok(tally)
    }

    /// Runs a turn of the host, then one of the HTTP server.
    fn step(&mut self) -> Result<()> {
        self.host.turn(self.now.get())?;
        self.app.turn()
    }
}

/// Name of [`counted_step`], for callgrind's option.
pub(super) const COUNTED: &str = "counted_step";

#[inline(never)]
fn counted_step(serving: &mut Serving) -> Result<()> {
    // Without `black_box` the call could become a tail jump, which callgrind would not see as a call.
    std::hint::black_box(serving.step())
}

/// Name of [`window_begins`], at which callgrind resets its counts.
pub(super) const WINDOW: &str = "window_begins";

#[inline(never)]
fn window_begins() {
    std::hint::black_box(());
}

pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(super) const PORT: u16 = 80;
pub(super) const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Turns without progress after which the run fails: about a second of virtual time.
const TIMEOUT_TURNS: u64 = 20_000;
const SHORT: Duration = Duration::from_micros(100);
const BACKLOG: usize = 512;
