//! Confirmation: the step by which a user confirms a run that otherwise ends after a timeout.

use std::time::Duration;

use rxo_frame::Instant;

/// The state of the user's confirmation, without which the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirmation {
    /// No confirmation is needed, or it has been given.
    Enough,
    /// The confirmation must be given within this time after the first change of an interface.
    Within(Duration),
    /// The confirmation must be given before this instant.
    Before(Instant),
    /// The confirmation was not given in time. The worker may end by itself until `kill_at`.
    Missed { kill_at: Instant },
    /// The confirmation was not given in time, and the worker was killed.
    Killed,
}

/// The time that a worker has to end by itself after the confirmation was not given.
const GRACE: Duration = Duration::from_secs(3);

impl Confirmation {
    /// Returns the next state of the confirmation if the state changes at `now`; otherwise `None`.
    pub(super) fn at(self, now: Instant) -> Option<Self> {
        match self {
            Self::Before(end) if now >= end => Some(Self::Missed { kill_at: now + GRACE }),
            Self::Missed { kill_at } if now >= kill_at => Some(Self::Killed),
            _ => None,
        }
    }

    /// Returns `true` if the confirmation was not given in time.
    pub(super) const fn is_missing(self) -> bool {
        matches!(self, Self::Missed { .. } | Self::Killed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_nobody_confirms_is_ended_and_then_killed() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let waits = Confirmation::Before(at(10));
        assert_eq!(waits.at(at(9)), None);
        let missed = waits.at(at(10)).unwrap();
        assert_eq!(missed, Confirmation::Missed { kill_at: at(10) + GRACE });
        assert_eq!(missed.at(at(10)), None);
        assert_eq!(missed.at(at(10) + GRACE), Some(Confirmation::Killed));
        assert!(missed.is_missing() && Confirmation::Killed.is_missing());
        for enough in [Confirmation::Enough, Confirmation::Within(GRACE), Confirmation::Killed] {
            assert_eq!(enough.at(at(1_000)), None);
        }
    }
}
