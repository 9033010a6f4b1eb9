//! A sink as a direction sees it: whether it takes anything now, and when to ask again.
//!
//! It stands apart because both directions have one, and neither may ever wait for its own: the other
//! would wait with it. A direction whose sink is blocked does not read its source. What comes
//! meanwhile gathers before the source, in the ring or the queue of the system, which has a limit of
//! its own and counts what it drops.

use rxo_device::{DeviceError, FrameSink};

/// A sink, and what is known of its room.
pub(super) struct Outlet<K> {
    pub(super) sink: K,
    /// How often in a row the sink was asked to go on and could not send all that it keeps.
    futile: u32,
}

/// After so many, the system may be wrong about its room: then time decides, not the descriptor.
const MOST_FUTILE: u32 = 2;

impl<K: FrameSink> Outlet<K> {
    pub(super) const fn new(sink: K) -> Self {
        Self { sink, futile: 0 }
    }

    /// Sends what the sink keeps.
    ///
    /// # Errors
    /// When the device failed.
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

    /// Whether nothing should be read for it.
    pub(super) fn is_blocked(&self) -> bool {
        self.sink.is_blocked()
    }

    /// The sink, if it is to be waited for.
    pub(super) fn wanted(&self) -> Option<&K> {
        (self.sink.is_blocked() && self.futile < MOST_FUTILE).then_some(&self.sink)
    }

    /// Makes a last try with what the sink keeps.
    ///
    /// # Errors
    /// When the device failed.
    pub(super) fn finish(&mut self) -> Result<(), DeviceError> {
        let resumed = self.sink.resume();
        self.sink.abandon();
        resumed
    }
}
