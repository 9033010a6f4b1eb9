//! The knee: the sender alone on one core; the modelled link and receivers on another, behind rings in shared
//! memory.
//!
//! `vhost:` and `virtio:` are the two sides of the rings, so the card's cost falls on the model's core.
//! Frames move in real time. The sender polls, so its core is entirely its own.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rxo::live::{Device, DeviceOptions};
use rxo::{ChecksumStatus, Frame, FrameSink, FrameSource};
use rxo_demo::machine::Cores;
use rxo_driver::{GuestOptions, clock};
use rxo_peers::Folder;
use serde::Serialize;

use super::model::{Counts, Network, least_time};
use super::sender::{Case, Sender};
use crate::card;

/// The result of one cast.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Timed {
    bits_per_s: f64,
    /// Seconds from the first byte until the last receiver is done.
    pub(super) seconds: f64,
    /// This time in percent of what the link alone takes.
    percent: f64,
    /// ACKs of all receivers per segment to the group.
    acks_a_segment: f64,
    /// Segments that the sender repeated, although nothing was lost.
    repairs: u64,
}

/// Sends `bytes` to `receivers` over a link of `bits_per_s`.
pub(super) fn cast(case: Case, bits_per_s: f64, bytes: u64, cores: Cores) -> Result<Timed> {
    let folder = Folder::new("smo-knee")?;
    let socket = folder.guest(0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let model = scope.spawn(|| {
            let model = |()| model(&socket, case.receivers, bits_per_s, &stop);
            let counts = pinned(cores.sender).and_then(model);
            // The sender must not wait for a model that has ended for any reason.
            stop.store(true, Ordering::Relaxed);
            counts
        });
        // On a thread of its own, so that this one keeps its affinity.
        let sent =
            scope.spawn(|| pinned(cores.receiver).and_then(|()| send(&socket, case, bytes, &stop)));
        let sent = joined(sent);
        stop.store(true, Ordering::Relaxed);
        let counts = joined(model);
        // A failed model is also the cause of a failed sender, so its error comes first.
        let Counts { segments, acks, repairs, bytes: came } = counts?;
        let seconds = sent?;
        ensure!(came == bytes, "{came} of {bytes} bytes came");
        let percent = 100.0 * seconds / least_time(bytes, bits_per_s).as_secs_f64();
        let acks_a_segment = acks as f64 / segments as f64;
        Ok(Timed { bits_per_s, seconds, percent, acks_a_segment, repairs })
    })
}

fn pinned(core: Option<usize>) -> Result<()> {
    Ok(core.map_or(Ok(()), rxo_testbed::pin_to_core)?)
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs the link and the receivers until `stop` is set.
fn model(socket: &Path, receivers: usize, bits_per_s: f64, stop: &AtomicBool) -> Result<Counts> {
    let guest = GuestOptions { aggregates: false, ..GuestOptions::default() };
    let options = DeviceOptions { guest, ..DeviceOptions::default() };
    let card = format!("vhost:{}", socket.display()).parse()?;
    let Device { mut source, mut sink } = Device::open(&card, options)?;
    let mut network = Network::new(receivers, bits_per_s);
    let checksum = ChecksumStatus::Verified;
    let (mut batch, mut answers) = (Vec::new(), VecDeque::<Answer>::new());
    // Until the sender has connected to the ring, frames to it would be dropped.
    while sink.load().is_none() && !stop.load(Ordering::Relaxed) {
        source.receive(&mut batch, 1)?;
        thread::sleep(Duration::from_millis(1));
    }
    while !stop.load(Ordering::Relaxed) {
        let now = clock::now();
        if network.has_room(now) {
            source.receive(&mut batch, FRAMES_AT_ONCE)?;
        } else {
            source.attend();
        }
        for frame in batch.drain(..) {
            network.take(frame.bytes(), now, |frame| answers.push_back(Answer::of(frame)))?;
        }
        network.on_time(now, |frame| answers.push_back(Answer::of(frame)))?;
        if sink.is_blocked() {
            sink.resume()?;
        } else if !answers.is_empty() {
            let count = answers.len().min(ANSWERS_AT_ONCE);
            // A card has verified the checksums.
            let frames = answers.iter().take(count);
            let frame = |answer| Frame { checksum, ..Frame::new(Answer::frame(answer), now) };
            sink.transmit(frames.map(frame))?;
            answers.drain(..count);
        }
    }
    let dropped = sink.counters().dropped;
    ensure!(dropped == 0, "the ring dropped {dropped} acknowledgements");
    Ok(network.counts())
}

/// A frame of a receiver that waits for a free slot in the ring. There are millions in a second, so none is
/// allocated.
struct Answer {
    bytes: [u8; ANSWER_BYTES],
    length: usize,
}

impl Answer {
    fn of(frame: &[u8]) -> Self {
        let mut bytes = [0; ANSWER_BYTES];
        bytes[..frame.len()].copy_from_slice(frame);
        Self { bytes, length: frame.len() }
    }

    fn frame(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Runs the sender. Returns the duration of the cast in seconds.
fn send(socket: &Path, case: Case, bytes: u64, stop: &AtomicBool) -> Result<f64> {
    let begun = Instant::now();
    while !socket.exists() {
        check(begun, stop)?;
        thread::sleep(Duration::from_millis(1));
    }
    let device = card::host_side(&format!("virtio:{}", socket.display()).parse()?)?;
    let mut sender = Sender::new((device.source, device.sink), case)?;
    let begun = Instant::now();
    while sender.joined < case.receivers {
        sender.turn(clock::now())?;
        sender.process_events()?;
        check(begun, stop)?;
    }
    let begun = Instant::now();
    sender.start(bytes);
    while sender.done < case.receivers {
        sender.feed(true);
        sender.turn(clock::now())?;
        sender.process_events()?;
        check(begun, stop)?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

fn check(begun: Instant, stop: &AtomicBool) -> Result<()> {
    ensure!(!stop.load(Ordering::Relaxed), "the modelled network has ended");
    ensure!(begun.elapsed() < TIMEOUT, "the cast takes more than {} s", TIMEOUT.as_secs());
    Ok(())
}

/// Frames per receive call. These are GSO frames, of which the link has one or two ready.
const FRAMES_AT_ONCE: usize = 4;
/// Length of the longest answer, a SYN with its options, and some more.
const ANSWER_BYTES: usize = 96;
const ANSWERS_AT_ONCE: usize = 64;
const TIMEOUT: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smo::sender::Way;

    #[test]
    fn a_cast_through_rings_arrives_once_and_in_order() {
        let none = Cores { sender: None, receiver: None };
        for way in Way::TIMED {
            let timed = cast(Case { way, receivers: 20 }, 1e9, 2_000_000, none).unwrap();
            assert!(timed.acks_a_segment >= 20.0 / 16.0, "{timed:?}");
        }
    }
}
