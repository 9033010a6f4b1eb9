//! The pause of a worker before it receives a batch, so that more frames arrive for the batch.
//!
//! The rule is in this crate because every kind of worker needs it, and no kind of worker depends on another.

use core::time::Duration;

/// The rule by which a worker sleeps before the next batch, so that more frames arrive for it.
///
/// A sender at full speed sends a frame every microsecond. A worker that wakes for each frame receives batches of two
/// or three, so it coalesces little and submits often. After a batch of bulk traffic the worker therefore sleeps for
/// `time` instead of waiting for the next frame. After a smaller batch (requests and responses, ACKs) the worker does
/// not sleep, because a peer waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The length of a pause; zero for no pauses.
    pub time: Duration,
    /// The minimum number of frames in a batch after which the worker pauses.
    pub busy_frames: usize,
}

impl Pause {
    /// The rule without pauses.
    pub const NEVER: Self = Self { time: Duration::ZERO, busy_frames: usize::MAX };

    /// Returns the pause after a batch of `frames` frames; `None` for no pause.
    #[must_use]
    pub fn after(&self, frames: usize) -> Option<Duration> {
        (frames >= self.busy_frames && !self.time.is_zero()).then_some(self.time)
    }
}

impl Default for Pause {
    /// Returns the default rule: a pause of 100 µs after at least eight frames. This fills batches at 10 Gbit/s, and is
    /// less than a round trip through a switch.
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
