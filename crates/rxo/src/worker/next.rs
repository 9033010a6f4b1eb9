//! Next: decides the action of a worker after a turn: start another turn at once, pause, or wait. The function
//! has no side effects, and is tested with a table of cases.

use std::time::Duration;

use rxo_frame::Instant;

use super::WorkerConfig;

/// The result of a worker's turn: the numbers of received frames, and the time of the batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// The number of frames received from the nic; 0 if the host's sink is blocked.
    pub(super) from_nic: usize,
    /// The number of frames received from the host; 0 if the nic's sink is blocked.
    pub(super) from_host: usize,
    /// The instant at which the batch from the nic was received.
    pub(super) now: Instant,
}

/// The action of a worker after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Start another turn at once.
    Again,
    /// Start a turn after this time, even if frames arrive earlier.
    Pause(Duration),
    /// Start a turn when frames arrive, and after this time at the latest.
    Wait(Duration),
}

/// The maximum wait, so that a stop flag set by another thread is noticed.
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Returns the action of the worker after `turn`. If there is a `deadline`, a turn is due then even if
/// nothing arrives.
pub(super) fn next(config: &WorkerConfig, turn: Turn, deadline: Option<Instant>) -> Next {
    // After a full batch there are probably more frames.
    let has_more =
        turn.from_nic >= config.budget_frames || turn.from_host >= config.host_budget_frames;
    let left = deadline.map_or(LONGEST_WAIT, |deadline| deadline.since(turn.now));
    if has_more || left.is_zero() {
        return Next::Again;
    }
    match config.pause.after(turn.from_nic) {
        Some(time) => Next::Pause(time.min(left)),
        None => Next::Wait(left.min(LONGEST_WAIT)),
    }
}

#[cfg(test)]
mod tests {
    use rxo_coalesce::Policy;

    use super::*;

    const NOW: Instant = Instant::from_micros(1_000);

    fn after(from_nic: usize, from_host: usize, deadline_us: Option<u64>) -> Next {
        let config = WorkerConfig::new(Policy::linux_gro());
        let turn = Turn { from_nic, from_host, now: NOW };
        next(&config, turn, deadline_us.map(|us| NOW + Duration::from_micros(us)))
    }

    fn micros(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn what_comes_next() {
        let rows = [
            // No frames: wait, but not beyond the deadline.
            (after(0, 0, None), Next::Wait(LONGEST_WAIT)),
            (after(0, 0, Some(40)), Next::Wait(micros(40))),
            (after(0, 0, Some(900_000)), Next::Wait(LONGEST_WAIT)),
            // A few frames are not a bulk transfer, and the host's frames never indicate one.
            (after(7, 0, None), Next::Wait(LONGEST_WAIT)),
            (after(7, 63, None), Next::Wait(LONGEST_WAIT)),
            // A bulk transfer: pause, but not beyond the deadline.
            (after(8, 0, None), Next::Pause(micros(100))),
            (after(255, 63, None), Next::Pause(micros(100))),
            (after(8, 0, Some(30)), Next::Pause(micros(30))),
            // More frames are there, or something is due.
            (after(256, 0, None), Next::Again),
            (after(0, 64, None), Next::Again),
            (after(0, 0, Some(0)), Next::Again),
            (after(100, 0, Some(0)), Next::Again),
        ];
        for (row, (seen, expected)) in rows.into_iter().enumerate() {
            assert_eq!(seen, expected, "row {row}");
        }
    }
}
