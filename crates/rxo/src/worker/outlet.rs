//! Outlet: the sink of one direction of a worker, with a record of whether the sink accepts packets now, and
//! when to try again.
//!
//! This module is separate because each direction has an outlet. Neither direction may wait for its sink,
//! because the other direction would wait too. A direction whose sink is blocked does not read its source.
//! Frames then queue before the source, in the ring or in a queue of the system, which is bounded and counts
//! its drops.

use rxo_device::{DeviceError, FrameSink};

use super::balance::Stage;

/// The sink of one direction of a worker, and the number of times in a row that resuming this sink sent nothing.
pub(super) struct Outlet<K> {
    pub(super) sink: K,
    /// The number of times in a row that the blocked sink was resumed but sent nothing.
    futile: u32,
}

/// The number of attempts in a row that sent nothing, after which the sink's descriptor is not trusted to
/// report free space. The worker then waits for a fixed time instead.
const MOST_FUTILE: u32 = 2;

impl<K: FrameSink> Outlet<K> {
    pub(super) const fn new(sink: K) -> Self {
        Self { sink, futile: 0 }
    }

    /// Sends the packets that the sink has kept while the device was full. Does nothing if the sink is not blocked.
    ///
    /// # Errors
    /// If the device failed.
    pub(super) fn resume(&mut self) -> Result<(), DeviceError> {
        if !self.sink.is_blocked() {
            return Ok(());
        }
        let frames = self.sink.counters().frames;
        let resumed = self.sink.resume();
        let is_futile = self.sink.is_blocked() && self.sink.counters().frames == frames;
        self.futile = if is_futile { self.futile + 1 } else { 0 };
        resumed
    }

    /// Returns `true` if the sink keeps packets because the device is full; the source of this direction must then not
    /// be read.
    pub(super) fn is_blocked(&self) -> bool {
        self.sink.is_blocked()
    }

    /// Returns the counts of this stage for the check of balance: the frames passed to the sink (`given`),
    /// and the frames that the sink accounts for.
    pub(super) fn stage(&self, given: u64) -> Stage {
        Stage::of_sink(given, &self.sink.counters(), self.sink.kept_frames())
    }

    /// Returns the sink if the worker should wait until the sink's descriptor is writable; otherwise `None`.
    pub(super) fn wanted(&self) -> Option<&K> {
        (self.sink.is_blocked() && self.futile < MOST_FUTILE).then_some(&self.sink)
    }

    /// Tries once more to send the packets that the sink keeps, and drops the packets that the sink cannot send.
    ///
    /// # Errors
    /// If the device failed.
    pub(super) fn finish(&mut self) -> Result<(), DeviceError> {
        let resumed = self.sink.resume();
        self.sink.abandon();
        resumed
    }
}
