//! The sink of a direction: whether it takes packets now, and when to try again.
//!
//! It is separate because both directions have one, and neither may wait for it: the other direction
//! would wait too. A direction whose sink is blocked does not read its source. Frames then queue before
//! the source, in the ring or in a queue of the system, which is bounded and counts what it drops.

use rxo_device::{DeviceError, FrameSink};

use super::balance::Stage;

/// A sink, and how well it makes room.
pub(super) struct Outlet<K> {
    pub(super) sink: K,
    /// How often in a row the sink was resumed and sent nothing.
    futile: u32,
}

/// After so many, the descriptor may be wrong about room: then wait for time, not for it.
const MOST_FUTILE: u32 = 2;

impl<K: FrameSink> Outlet<K> {
    pub(super) const fn new(sink: K) -> Self {
        Self { sink, futile: 0 }
    }

    /// Sends the packets that the sink keeps.
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

    /// Whether the source of this direction must not be read.
    pub(super) fn is_blocked(&self) -> bool {
        self.sink.is_blocked()
    }

    /// What became of `given` frames that the sink was given.
    pub(super) fn stage(&self, given: u64) -> Stage {
        Stage::of_sink(given, &self.sink.counters(), self.sink.kept_frames())
    }

    /// The sink, if the worker should wait for its descriptor.
    pub(super) fn wanted(&self) -> Option<&K> {
        (self.sink.is_blocked() && self.futile < MOST_FUTILE).then_some(&self.sink)
    }

    /// Tries once more to send the packets that the sink keeps, and drops the rest.
    ///
    /// # Errors
    /// If the device failed.
    pub(super) fn finish(&mut self) -> Result<(), DeviceError> {
        let resumed = self.sink.resume();
        self.sink.abandon();
        resumed
    }
}
