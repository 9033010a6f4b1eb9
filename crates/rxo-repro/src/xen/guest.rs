//! What a byte costs a guest: the instructions of a real Linux in emulation, counted by the emulator.
//!
//! A Linux sender's frames cross rxo's worker, whose polls have so many frames, and reach the guest through
//! `vhost:`. The guest's program reads 64 KiB at a time and discards them. Two transfers of different size are
//! counted; their difference has nothing of starting a program or a connection.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use rxo::device::Pause;
use rxo::live::{Device, DeviceOptions, Outcome};
use rxo::{Reading, WorkerConfig};
use rxo_driver::GuestOptions;
use rxo_lab::{Guest, GuestImage, GuestNet, Lab, Namespace, Processor, Profile, Symbols};
use serde::Serialize;

use super::portions::Portions;
use super::system::System;
use super::traffic::Polls;

/// What a byte costs a guest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct GuestCost {
    pub(super) system: System,
    /// The most frames of a poll.
    pub(super) frames_a_poll: f64,
    /// Instructions of the guest's kernel and programs.
    pub(super) instructions_a_byte: f64,
    /// Those of the functions that copy to the program.
    pub(super) copying_a_byte: f64,
    /// Packets of the wire in each that the guest's card got.
    pub(super) packets_an_aggregate: f64,
    /// How often each byte was copied on the way into the guest.
    pub(super) copies: f64,
}

/// Receives through `system` and counts the guest's instructions for `bytes` bytes.
///
/// # Errors
/// If QEMU, a kernel for the guest or a C compiler is missing, which one line names, or a transfer breaks.
pub(super) fn cost(system: System, frames_a_poll: f64, bytes: usize) -> Result<GuestCost> {
    let image = GuestImage::find()?;
    let (lab, folder) = (Lab::through()?, Folder::new()?);
    let socket = folder.0.join("guest");
    let domain = Running::start(&lab, system, frames_a_poll, &socket)?;
    let options = rxo_lab::GuestOptions {
        net: GuestNet::Vhost(socket),
        address: (Lab::HOST_ADDRESSES.0, 24),
        number: 2,
        processor: Processor::Counted,
    };
    let mut guest = Guest::boot(&image, &options)?;
    // What the ring has no room for would arrive as single frames.
    guest.run(&format!("echo {BUFFER} >/proc/sys/net/ipv4/tcp_rmem"), PATIENCE)?;
    let symbols = guest.symbols()?;
    let (few, many) = (bytes / 4, bytes);
    let short = receive(&mut guest, lab.peer(), few)?;
    let long = receive(&mut guest, lab.peer(), many)?;
    drop(guest);
    let Reading { host_out, engine, .. } = domain.finish()?;
    let a_byte = |count: &dyn Fn(&Profile) -> u64| {
        count(&long).saturating_sub(count(&short)) as f64 / (many - few) as f64
    };
    let deliveries = engine.aggregates + engine.singles;
    Ok(GuestCost {
        system,
        frames_a_poll,
        instructions_a_byte: a_byte(&|profile| profile.user() + profile.kernel()),
        copying_a_byte: a_byte(&|profile| copying(profile, &symbols)),
        packets_an_aggregate: match deliveries {
            0 => host_out.frames as f64 / host_out.packets as f64,
            _ => (engine.aggregated_segments + engine.singles) as f64 / deliveries as f64,
        },
        copies: host_out.bytes_copied as f64 / host_out.bytes as f64,
    })
}

/// Sends `bytes` bytes to the guest, and returns what it executed meanwhile.
fn receive(guest: &mut Guest, peer: &Namespace, bytes: usize) -> Result<Profile> {
    let before = guest.profile()?;
    guest.start(&format!("nc -l -p {PORT} -e dd of=/dev/null bs=65536 2>/dev/null"))?;
    let content = vec![0x5a; bytes];
    let sent = peer.run(|| -> Result<()> {
        let mut stream = connect()?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream.write_all(&content)?)
    })?;
    sent.context("cannot send to the guest")?;
    guest.finish(PATIENCE)?;
    Ok(guest.profile()?.since(&before))
}

/// Connects as soon as the guest listens.
fn connect() -> Result<TcpStream> {
    let (address, deadline) =
        (SocketAddr::from((Lab::HOST_ADDRESSES.0, PORT)), Instant::now() + PATIENCE);
    loop {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() > deadline => return Err(error.into()),
            Err(_) => std::thread::sleep(AGAIN),
        }
    }
}

/// Instructions of the kernel's functions that copy to a program.
fn copying(profile: &Profile, symbols: &Symbols) -> u64 {
    let functions = profile.functions(symbols);
    let copies =
        functions.iter().filter(|(name, _)| COPYING.iter().any(|copy| name.contains(copy)));
    copies.map(|(_, count)| count).sum()
}

/// A worker between the lab's wire and a guest. Dropping it stops it.
struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<rxo_lab::Result<Result<Outcome>>>>,
}

impl Running {
    fn start(
        lab: &Lab,
        system: System,
        frames_a_poll: f64,
        socket: &std::path::Path,
    ) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, socket) = (Arc::clone(&stop), socket.display().to_string());
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = lab.host().spawn("rxo", move || {
            let guest = GuestOptions { path: system.path(), ..GuestOptions::default() };
            let options = DeviceOptions { guest, ..DeviceOptions::default() };
            let host = Device::open(&format!("vhost:{socket}").parse()?, options)?;
            let wire = format!("packet:{}", Lab::WIRE_INTERFACE).parse()?;
            let Device { source, sink } = Device::open(&wire, options)?;
            // The receiver is gone only when the command is at its end.
            _ = ready.send(());
            let source = Box::new(Portions::new(source, Polls::new(frames_a_poll)));
            let config = WorkerConfig {
                budget_frames: frames_a_poll.ceil() as usize,
                pause: Pause::NEVER,
                overload: None,
                ..WorkerConfig::new(system.policy())
            };
            Ok(rxo::live::run(Device { source, sink }, host, config, &seen, |_| ())?)
        })?;
        let running = Self { stop, thread: Some(thread) };
        if is_ready.recv().is_err() {
            return Err(running.finish().err().unwrap_or_else(|| anyhow!("rxo did not start")));
        }
        Ok(running)
    }

    /// Stops it and gives its totals.
    fn finish(mut self) -> Result<Reading> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("rxo has ended before")?;
        let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let outcome = ended??;
        outcome.result?;
        ensure!(outcome.totals.host_out.packets > 0, "the guest got no packets");
        Ok(outcome.totals)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // After a failure elsewhere, which is reported; this one no longer matters.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = super::driver::temporary("guest");
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Left behind it would be an empty folder among temporary files.
        _ = std::fs::remove_dir_all(&self.0);
    }
}

const PORT: u16 = 5_001;
/// Least, usual and most bytes of a receive buffer: the window then fits into the ring.
const BUFFER: &str = "4096 262144 262144";
const PATIENCE: Duration = Duration::from_secs(180);
const AGAIN: Duration = Duration::from_millis(50);
/// Parts of the names of functions that copy to a program.
const COPYING: [&str; 3] = ["copy_user", "copy_to_iter", "rep_movs"];
