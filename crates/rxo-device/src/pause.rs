//! When whoever takes frames from a device lets them gather first.
//!
//! It stands here because every worker above a device has to decide it, and none knows another.

use core::time::Duration;

/// When to let frames gather before the next batch.
///
/// A sender at full speed sends a frame every microsecond: who is woken by each takes batches of
/// two or three, and coalesces and submits as few. After a batch that shows such a sender the
/// worker sleeps for a moment instead of waiting for the next frame; after a smaller one
/// (request/response, ACKs) it does not, so that nobody who waits for an answer waits for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// For how long. Zero: never.
    pub time: Duration,
    /// How many frames a batch from the device must have had.
    pub busy_frames: usize,
}

impl Pause {
    /// No pauses.
    pub const NEVER: Self = Self { time: Duration::ZERO, busy_frames: usize::MAX };

    /// The pause after a batch of `frames`, if there is one.
    #[must_use]
    pub fn after(&self, frames: usize) -> Option<Duration> {
        (frames >= self.busy_frames && !self.time.is_zero()).then_some(self.time)
    }
}

impl Default for Pause {
    /// 100 µs after eight frames: full batches at 10 Gbit/s, and less than a round trip on any
    /// network that has a switch in it.
    fn default() -> Self {
        Self { time: Duration::from_micros(100), busy_frames: 8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_of_no_time_is_none() {
        let pause = Pause { time: Duration::ZERO, ..Pause::default() };
        assert_eq!((pause.after(1_000), Pause::NEVER.after(usize::MAX)), (None, None));
        assert_eq!(Pause::default().after(8), Some(Duration::from_micros(100)));
        assert_eq!(Pause::default().after(7), None);
    }
}
