//! The sends of a group and their times, which are reported to the members' connections later.
//!
//! Separate so that recording a send costs the same for any number of receivers. All sends are reported to a
//! connection before any event except an in-order ACK (`acks.rs`). A timer reports sends at the latest after
//! [`CHECK_AFTER`], so that the timers of a connection run even if no ACK arrives.

use alloc::collections::VecDeque;

use rxo_frame::{Duration, Instant};

/// The last sends of a group, numbered from its first send.
#[derive(Debug, Default)]
pub(super) struct Sends {
    /// The stream position after each send, and the time at which it was sent.
    last: VecDeque<(u64, Instant)>,
    /// The number of the first send in `last`.
    first: u64,
    check_at: Option<Instant>,
}

impl Sends {
    /// Records that everything before `end` has been sent at `now`.
    pub(super) fn push(&mut self, end: u64, now: Instant) {
        if self.last.len() == MOST {
            // A connection that was not informed of this send counts it as part of the next send, a little
            // later.
            self.last.pop_front();
            self.first += 1;
        }
        self.last.push_back((end, now));
        self.check_at.get_or_insert(now + CHECK_AFTER);
    }

    /// Returns the number that the next send will get.
    pub(super) fn next(&self) -> u64 {
        self.first + self.last.len() as u64
    }

    /// Returns the send with this `number` and all later sends.
    pub(super) fn from(&self, number: u64) -> impl Iterator<Item = (u64, Instant)> {
        let skipped = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.last.range(skipped.min(self.last.len())..).copied()
    }

    /// Returns the number of the first send that reaches beyond `position`. Costs O(log n).
    pub(super) fn first_after(&self, position: u64) -> u64 {
        self.first + self.last.partition_point(|(end, _)| *end <= position) as u64
    }

    /// Returns the time at which the byte before `end` was sent. Costs O(log n).
    #[inline]
    pub(super) fn when(&self, end: u64) -> Instant {
        let index = self.last.partition_point(|(sent, _)| *sent < end);
        self.last.get(index).map_or(Instant::ZERO, |(_, at)| *at)
    }

    /// Schedules another check of the connections after [`CHECK_AFTER`], unless one is scheduled.
    pub(super) fn check_again(&mut self, now: Instant) {
        self.check_at.get_or_insert(now + CHECK_AFTER);
    }

    /// Returns the time of the next check of the connections; `None` if none is needed.
    pub(super) fn check_at(&self) -> Option<Instant> {
        self.check_at
    }

    /// Returns `true`, once, if the check is due.
    pub(super) fn take_check(&mut self, now: Instant) -> bool {
        self.check_at.take_if(|at| *at <= now).is_some()
    }
}

/// Maximum number of sends of a group that are remembered one by one.
const MOST: usize = 1_024;
/// The longest time before a send is reported to connections: less than the smallest retransmission timeout of
/// any host, so that a timer started this late is still useful.
pub(super) const CHECK_AFTER: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_sends_become_part_of_the_next() {
        let mut sends = Sends::default();
        for number in 0..MOST as u64 + 5 {
            sends.push(10 * (number + 1), Instant::from_micros(number));
        }
        assert_eq!(sends.next(), MOST as u64 + 5);
        assert_eq!(sends.from(0).count(), MOST);
        assert_eq!(sends.from(2).next(), Some((60, Instant::from_micros(5))));
        assert_eq!(sends.from(MOST as u64 + 4).count(), 1);
        assert_eq!(sends.from(u64::MAX).count(), 0);
    }

    #[test]
    fn one_check_is_due_after_the_first_of_several_sends() {
        let mut sends = Sends::default();
        sends.push(1, Instant::ZERO);
        sends.push(2, Instant::from_micros(9_000));
        assert_eq!(sends.check_at(), Some(Instant::ZERO + CHECK_AFTER));
        assert!(!sends.take_check(Instant::from_micros(9_999)));
        assert!(sends.take_check(Instant::from_micros(10_000)));
        assert!(!sends.take_check(Instant::from_micros(10_000)));
    }
}
