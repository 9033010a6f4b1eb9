//! What the group sent, and when: connections learn of it later.
//!
//! Separate so that recording a send costs the same for any number of receivers. A connection learns of all sends before
//! anything but an acknowledgement in order happens to it (`acks.rs`). So that its timers run even if no acknowledgement
//! ever comes, those that have not learned of a send for [`CHECK_AFTER`] are told.

use alloc::collections::VecDeque;

use rxo_frame::{Duration, Instant};

/// The last sends, numbered from the first that ever was.
#[derive(Debug, Default)]
pub(super) struct Sends {
    /// The position after each, and when it left.
    last: VecDeque<(u64, Instant)>,
    /// The number of the first of them.
    first: u64,
    check_at: Option<Instant>,
}

impl Sends {
    /// Everything before `end` has left at `now`.
    pub(super) fn push(&mut self, end: u64, now: Instant) {
        if self.last.len() == MOST {
            // Who has not learned of it takes it for a part of the next one, which left little later.
            self.last.pop_front();
            self.first += 1;
        }
        self.last.push_back((end, now));
        self.check_at.get_or_insert(now + CHECK_AFTER);
    }

    /// The number of the next send.
    pub(super) fn next(&self) -> u64 {
        self.first + self.last.len() as u64
    }

    /// The sends from `number` on.
    pub(super) fn from(&self, number: u64) -> impl Iterator<Item = (u64, Instant)> {
        let skipped = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.last.range(skipped.min(self.last.len())..).copied()
    }

    /// The number of the first send that reaches beyond `position`. Costs O(log n).
    pub(super) fn first_after(&self, position: u64) -> u64 {
        self.first + self.last.partition_point(|(end, _)| *end <= position) as u64
    }

    /// When the byte before `end` left. Costs O(log n).
    #[inline]
    pub(super) fn when(&self, end: u64) -> Instant {
        let index = self.last.partition_point(|(sent, _)| *sent < end);
        self.last.get(index).map_or(Instant::ZERO, |(_, at)| *at)
    }

    /// Has connections checked again after a while.
    pub(super) fn check_again(&mut self, now: Instant) {
        self.check_at.get_or_insert(now + CHECK_AFTER);
    }

    /// When connections must be told; `None` if all were.
    pub(super) fn check_at(&self) -> Option<Instant> {
        self.check_at
    }

    /// Whether connections must be told now.
    pub(super) fn take_check(&mut self, now: Instant) -> bool {
        self.check_at.take_if(|at| *at <= now).is_some()
    }
}

/// At most so many are remembered one by one.
const MOST: usize = 1_024;
/// Less than the least retransmission timeout of any host, so that a timer that starts this late still serves.
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
