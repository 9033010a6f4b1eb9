//! Counts the driver domain's instructions per byte with callgrind.
//!
//! This program runs itself under `valgrind --tool=callgrind`. That process runs the driver domain on one
//! thread, and on another a guest: rxo's own virtio driver, which takes packets out of the ring and drops
//! them. They share memory as with a virtual machine. Frames are prepared as a card leaves them, and
//! callgrind counts only the domain's polls: engine, ring and copies. Each poll begins once the guest has
//! taken everything, so the counts do not depend on the machine.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rxo::live::{Device, DeviceOptions};
use rxo::{FrameSink, FrameSource, Load};
use rxo_driver::{DeviceName, DeviceSource, GuestOptions};
use rxo_peers::Folder;
use serde::{Deserialize, Serialize};

use super::Case;
use super::domain::Domain;
use super::traffic::{SEGMENT_BYTES, Traffic};
use crate::counted::{Categories, Counted, counted};
use crate::source::Polls;
use crate::{callgrind, card};

/// Cost of the polls of a driver domain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Cost {
    pub(super) instructions_a_byte: f64,
    pub(super) instructions_a_frame: f64,
    /// Number of copies of each byte.
    pub(super) copies: f64,
    /// Number of buffers that a packet is spread over.
    pub(super) pieces: f64,
    pub(super) packets_an_aggregate: f64,
}

/// Report of the process under callgrind: its sent packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Sent {
    frames: u64,
    packets: u64,
    bytes: u64,
    bytes_copied: u64,
    pieces: u64,
}

/// Counts `frames` frames through the system of `case`.
pub(super) fn count(case: Case, frames: usize) -> Result<Cost> {
    callgrind::check()?;
    let step = ("Driver", &Parameters { case, frames });
    let Counted { said, costs, .. } =
        counted(step, ("counted_poll", &[]), &Categories(&[], "all"))?;
    Ok(Cost::of(costs.total(), said))
}

impl Cost {
    fn of(instructions: f64, sent: Sent) -> Self {
        let Sent { frames, packets, bytes, bytes_copied, pieces } = sent;
        let frames = frames as f64;
        Self {
            instructions_a_byte: instructions / (frames * SEGMENT_BYTES as f64),
            instructions_a_frame: instructions / frames,
            copies: bytes_copied as f64 / bytes as f64,
            pieces: pieces as f64 / packets as f64,
            packets_an_aggregate: frames / packets as f64,
        }
    }
}

/// The parameters of the process under callgrind.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Parameters {
    case: Case,
    frames: usize,
}

/// Runs under callgrind: forwards frames, and prints the sent packets as JSON.
pub(crate) fn run(Parameters { case, frames }: &Parameters) -> Result<()> {
    let folder = Folder::new("xen-ring")?;
    let sent = pass_on(*case, *frames, &folder.guest(0))?;
    rxo_console::output::json_line(&sent)
}

fn pass_on(case: Case, frames: usize, socket: &Path) -> Result<Sent> {
    let (path, layout) = (case.system.path(), case.system.layout());
    let guest = GuestOptions { path, layout, ..GuestOptions::default() };
    let options = DeviceOptions { guest, ..DeviceOptions::default() };
    let device = Device::open(&format!("vhost:{}", socket.display()).parse()?, options)?;
    let guest = format!("virtio:{}", socket.display()).parse()?;
    let (stop, taken) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let drops = scope.spawn(|| drop_all(&guest, &stop, &taken));
        let sent = poll_all(case, frames, device, &taken);
        stop.store(true, Ordering::Relaxed);
        match drops.join() {
            Ok(dropped) => dropped.and(sent),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Runs the guest: takes packets, drops them, and counts them in `taken`.
fn drop_all(guest: &DeviceName, stop: &AtomicBool, taken: &AtomicU64) -> Result<()> {
    let mut device = card::host_side(guest)?;
    let mut batch = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        if device.source.receive(&mut batch, 256)? == 0 {
            thread::sleep(SHORT);
        }
        taken.fetch_add(batch.drain(..).len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

fn poll_all(
    Case { system, frames_a_poll }: Case,
    frames: usize,
    mut device: Device,
    taken: &AtomicU64,
) -> Result<Sent> {
    let traffic = Traffic::new(frames, SEGMENT_BYTES);
    let mut domain = Domain::new(system, device.sink)?;
    let source = &mut device.source;
    // Until the guest has started, its load is unknown.
    wait_for_guest(source, || domain.sink.load().is_some())?;
    let (mut polls, mut next) = (Polls::new(frames_a_poll), 0);
    while next < traffic.len() {
        let end = (next + polls.next()).min(traffic.len());
        // The load is that of a guest in a bulk transfer, however fast this guest reads.
        domain.poll((next..end).map(|n| traffic.frame(n)), Some(Load { unread: 64 }))?;
        let sent = domain.sink.counters().packets;
        wait_for_guest(source, || taken.load(Ordering::Relaxed) == sent)?;
        next = end;
    }
    let counters = domain.sink.counters();
    ensure!(counters.dropped == 0, "the ring dropped {} packets", counters.dropped);
    Ok(Sent {
        frames: counters.frames,
        packets: counters.packets,
        bytes: counters.bytes,
        bytes_copied: counters.bytes_copied,
        pieces: counters.pieces,
    })
}

/// Waits until `is_so` returns `true`. Meanwhile receive calls keep the device's control socket served.
fn wait_for_guest(source: &mut DeviceSource, is_so: impl Fn() -> bool) -> Result<()> {
    let (deadline, mut batch) = (Instant::now() + TIMEOUT, Vec::new());
    loop {
        source.receive(&mut batch, 64)?;
        batch.clear();
        if is_so() {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "the guest did not take its packets");
        thread::sleep(SHORT);
    }
}

const SHORT: Duration = Duration::from_micros(100);
const TIMEOUT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xen::system::System;

    fn cost(system: System) -> (Sent, Cost) {
        let folder = Folder::new("xen-test").unwrap();
        let case = Case { system, frames_a_poll: 8.0 };
        let sent = pass_on(case, 160, &folder.guest(0)).unwrap();
        (sent, Cost::of(1.0, sent))
    }

    /// Forwards frames through a real ring, without callgrind.
    #[test]
    fn every_byte_is_copied_as_often_as_the_system_says() {
        for (system, frames, copies) in
            [(System::Xen, 1.0, 1.0), (System::Lro, 8.0, 2.0), (System::BoDa, 8.0, 1.0)]
        {
            let (sent, cost) = cost(system);
            assert_eq!((sent.frames, cost.copies), (160, copies), "{system:?}");
            assert!(cost.packets_an_aggregate >= frames, "{system:?}: {cost:?}");
        }
    }

    #[test]
    fn pages_have_one_piece_more_and_copy_each_byte_once() {
        let (frames, pages) = (cost(System::BoDa).1, cost(System::Pages).1);
        assert_eq!((pages.pieces, pages.copies), (frames.pieces + 1.0, 1.0));
    }
}
