//! Watch: decides whether a guest's thread hangs.
//!
//! This module is separate, and has no clock, so that it can be tested alone. No thread waits for a guest, so a
//! guest that is late costs others nothing; the watch only finds out which guest is to blame if frames for it
//! are lost. Contract: time counts only while frames wait for the guest and the hub itself runs, so neither a
//! guest without traffic nor a machine that was suspended seems to hang.

use std::time::Duration;

use rxo_frame::Instant;

/// The time without a turn of its thread after which a guest is late. Late guests are only counted, and not
/// reported to the user, because the thread may have been waiting for a processor.
pub(super) const LATE: Duration = Duration::from_millis(5);
/// The time without a turn of its thread after which a guest counts as hanging. The user is then notified, and
/// frames for the guest are dropped until the thread runs again.
pub(super) const HANGS_AFTER: Duration = Duration::from_secs(1);
/// The maximum time that is counted between two checks.
const LONGEST_STEP: Duration = Duration::from_millis(10);

/// The time for which one guest's thread has not run although frames were waiting for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watch {
    turns: u64,
    silent: Duration,
    /// The time of the last check; `None` if the guest was not silent then.
    last: Option<Instant>,
}

/// The result of a check of a guest's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuestState {
    /// Nothing has changed since the last check.
    Nothing,
    /// The guest's thread has just become late: it has not run for 5 ms although frames were waiting.
    IsLate,
    /// The guest's thread has just been found hanging: it has not run for one second although frames were
    /// waiting.
    Hangs,
    /// The guest's thread runs again after it hung.
    GoesOn,
}

impl Watch {
    /// Checks a guest whose thread has made `turns` turns so far. `is_awaited` is `true` if frames wait for
    /// the guest.
    pub(super) fn check(&mut self, turns: u64, is_awaited: bool, now: Instant) -> GuestState {
        let before = self.silent;
        let hung = before >= HANGS_AFTER;
        let has_turned = std::mem::replace(&mut self.turns, turns) != turns;
        if has_turned || (!is_awaited && !hung) {
            *self = Self { turns, silent: Duration::ZERO, last: is_awaited.then_some(now) };
            return if hung { GuestState::GoesOn } else { GuestState::Nothing };
        }
        let passed = self.last.map_or(Duration::ZERO, |last| now.since(last).min(LONGEST_STEP));
        self.last = Some(now);
        self.silent += passed;
        let passes = |limit| before < limit && self.silent >= limit;
        match (passes(HANGS_AFTER), passes(LATE)) {
            (true, _) => GuestState::Hangs,
            (_, true) => GuestState::IsLate,
            _ => GuestState::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_micros(1_000_000 + ms * 1_000)
    }

    /// Returns what checks in each millisecond from `from` to `to` find, for a guest that has made
    /// `turns(ms)` turns by then.
    fn found(
        watch: &mut Watch,
        (from, to): (u64, u64),
        turns: impl Fn(u64) -> u64,
        is_awaited: bool,
    ) -> Vec<(u64, GuestState)> {
        let looks = (from..to).map(|ms| (ms, watch.check(turns(ms), is_awaited, at(ms))));
        looks.filter(|(_, found)| *found != GuestState::Nothing).collect()
    }

    #[test]
    fn a_guest_that_turns_is_never_late() {
        let mut watch = Watch::default();
        assert!(found(&mut watch, (0, 10_000), |ms| ms / 4, true).is_empty());
    }

    #[test]
    fn a_guest_that_nobody_waits_for_may_sleep() {
        assert!(found(&mut Watch::default(), (0, 10_000), |_| 7, false).is_empty());
    }

    /// A guest sleeps, and a frame arrives just before the check.
    #[test]
    fn a_guest_that_was_just_given_work_is_not_late() {
        let mut watch = Watch::default();
        watch.check(7, false, at(0));
        assert_eq!(watch.check(7, true, at(100)), GuestState::Nothing);
        assert_eq!(watch.check(7, true, at(104)), GuestState::Nothing);
        assert_eq!(watch.check(7, true, at(105)), GuestState::IsLate);
    }

    #[test]
    fn a_silent_guest_is_late_then_hangs_and_then_goes_on() {
        let mut watch = Watch::default();
        watch.check(7, true, at(0));
        let seen = found(&mut watch, (1, 5_000), |_| 7, true);
        assert_eq!(seen, [(5, GuestState::IsLate), (1_000, GuestState::Hangs)]);
        // No frames are queued for the guest any more, and it still hangs.
        assert!(found(&mut watch, (5_000, 6_000), |_| 7, false).is_empty());
        assert_eq!(found(&mut watch, (6_000, 6_010), |_| 8, false), [(6_000, GuestState::GoesOn)]);
        assert_eq!(found(&mut watch, (6_010, 6_020), |_| 8, true), [(6_015, GuestState::IsLate)]);
    }

    #[test]
    fn time_in_which_the_hub_did_not_look_does_not_count() {
        let mut watch = Watch::default();
        watch.check(7, true, at(0));
        assert_eq!(
            watch.check(7, true, at(3_600_000)),
            GuestState::IsLate,
            "it may be late, but does not hang"
        );
        assert_eq!(watch.check(7, true, at(7_200_000)), GuestState::Nothing);
        assert_eq!(watch.silent, 2 * LONGEST_STEP);
    }
}
