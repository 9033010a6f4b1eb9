//! The knee: the sender alone on one core; the modelled link and receivers on another, behind rings in shared
//! memory.
//!
//! `vhost:` and `virtio:` are the two sides of the rings, so the card's cost falls on the model's core.
//! Frames move in real time. The sender polls, so its core is entirely its own.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rxo::live::{Device, DeviceOptions};
use rxo::{ChecksumStatus, Frame, FrameSink, FrameSource};
use rxo_demo::machine::Cores;
use rxo_driver::{DeviceName, GuestOptions, clock};
use serde::Serialize;

use super::model::{Counts, Network};
use super::sender::{Sender, Way};
use crate::folder::Folder;

/// The result of one cast.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Timed {
    /// Seconds from the first byte until the last receiver is done.
    pub(super) seconds: f64,
    /// ACKs of all receivers per segment to the group.
    pub(super) acks_a_segment: f64,
    /// Segments that the sender repeated, although nothing was lost.
    pub(super) repairs: u64,
}

/// Sends `bytes` to `receivers` over a link of `bits_per_s`.
///
/// # Errors
/// If a device cannot be opened, or a receiver fails.
pub(super) fn cast(
    (way, receivers): (Way, usize),
    bits_per_s: f64,
    bytes: u64,
    cores: Cores,
) -> Result<Timed> {
    let folder = Folder::new("smo-knee")?;
    let socket = folder.guest(0);
    let (card, stop) = (card(&socket)?, AtomicBool::new(false));
    thread::scope(|scope| {
        let model = || {
            let counts = on_core(cores.sender, || model(&card, receivers, bits_per_s, &stop));
            // The sender must not wait for a model that has ended for any reason.
            stop.store(true, Ordering::Relaxed);
            counts
        };
        let model = scope.spawn(model);
        let sent = on_core(cores.receiver, || send(&socket, (way, receivers), bytes, &stop));
        stop.store(true, Ordering::Relaxed);
        let counts = model.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // A failed model is also the cause of a failed sender, so its error comes first.
        let Counts { segments, acks, repairs, bytes: came } = counts?;
        let seconds = sent?;
        ensure!(came == bytes, "{came} of {bytes} bytes came");
        Ok(Timed { seconds, acks_a_segment: acks as f64 / segments as f64, repairs })
    })
}

/// Runs `work` on a separate thread on `core`, so that this thread keeps its affinity.
fn on_core<T: Send>(core: Option<usize>, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let pinned = || {
            core.map_or(Ok(()), rxo_testbed::pin_to_core)?;
            work()
        };
        let thread =
            thread::Builder::new().name("smo-knee".to_owned()).spawn_scoped(scope, pinned)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn card(socket: &Path) -> Result<DeviceName> {
    Ok(format!("vhost:{}", socket.display()).parse()?)
}

/// Runs the link and the receivers until `stop` is set.
fn model(
    card: &DeviceName,
    receivers: usize,
    bits_per_s: f64,
    stop: &AtomicBool,
) -> Result<Counts> {
    let guest = GuestOptions { aggregates: false, ..GuestOptions::default() };
    let options = DeviceOptions { guest, ..DeviceOptions::default() };
    let Device { mut source, mut sink } = Device::open(card, options)?;
    let mut network = Network::new(receivers, bits_per_s);
    let (mut batch, mut answers) = (Vec::new(), Answers::default());
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
            network.take(frame.bytes(), now, |answer| answers.push(answer))?;
        }
        network.on_time(now, |answer| answers.push(answer))?;
        if sink.is_blocked() {
            sink.resume()?;
        } else if !answers.is_empty() {
            let frames = answers.frames(now);
            let count = frames.len();
            sink.transmit(frames.into_iter())?;
            answers.advance(count);
        }
    }
    let dropped = sink.counters().dropped;
    ensure!(dropped == 0, "the ring dropped {dropped} acknowledgements");
    Ok(network.counts())
}

/// Frames of the receivers that wait for free slots in the ring.
#[derive(Debug, Default)]
struct Answers {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Number of answers at the front of the queue that were sent.
    sent: usize,
}

impl Answers {
    fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the next frames, marked as verified by a card; at most [`ANSWERS_AT_ONCE`].
    fn frames(&self, now: rxo::Instant) -> Vec<Frame<&[u8]>> {
        let first = self.sent.checked_sub(1).map_or(0, |last| self.ends[last]);
        let ends = self.ends[self.sent..].iter().take(ANSWERS_AT_ONCE);
        let starts = std::iter::once(&first).chain(ends.clone());
        let ranges = starts.zip(ends).map(|(start, end)| &self.bytes[*start..*end]);
        let verified =
            |bytes| Frame { checksum: ChecksumStatus::Verified, ..Frame::new(bytes, now) };
        ranges.map(verified).collect()
    }

    /// Removes the `count` frames that were sent.
    fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.ends.len() {
            self.bytes.clear();
            self.ends.clear();
            self.sent = 0;
        }
    }
}

/// Runs the sender. Returns the duration of the cast in seconds.
fn send(
    socket: &Path,
    (way, receivers): (Way, usize),
    bytes: u64,
    stop: &AtomicBool,
) -> Result<f64> {
    let name: DeviceName = format!("virtio:{}", socket.display()).parse()?;
    let device = opened(&name)?;
    let mut sender = Sender::new((device.source, device.sink), receivers, way)?;
    let begun = Instant::now();
    while sender.joined < receivers {
        sender.turn(clock::now())?;
        sender.hear()?;
        check(begun, stop)?;
    }
    let begun = Instant::now();
    sender.start(bytes);
    while sender.done < receivers {
        sender.feed(true);
        sender.turn(clock::now())?;
        sender.hear()?;
        check(begun, stop)?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Opens the sender's side of the rings once the model has made the socket.
fn opened(name: &DeviceName) -> Result<Device> {
    let begun = Instant::now();
    loop {
        match Device::open(name, DeviceOptions::default()) {
            Err(_) if begun.elapsed() < Duration::from_secs(10) => {
                thread::sleep(Duration::from_millis(5));
            }
            opened => return opened.context("the ring of the modelled card"),
        }
    }
}

fn check(begun: Instant, stop: &AtomicBool) -> Result<()> {
    ensure!(!stop.load(Ordering::Relaxed), "the modelled network has ended");
    ensure!(begun.elapsed() < PATIENCE, "the cast takes more than {} s", PATIENCE.as_secs());
    Ok(())
}

/// Frames per receive call. These are GSO frames, of which the link has one or two ready.
const FRAMES_AT_ONCE: usize = 4;
const ANSWERS_AT_ONCE: usize = 64;
const PATIENCE: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cast_through_rings_arrives_once_and_in_order() {
        let none = Cores { sender: None, receiver: None };
        for way in Way::TIMED {
            let timed = cast((way, 20), 1e9, 2_000_000, none).unwrap();
            assert!(timed.acks_a_segment >= 20.0 / 16.0, "{timed:?}");
        }
    }
}
