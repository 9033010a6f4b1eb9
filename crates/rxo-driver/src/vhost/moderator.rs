//! Moderator: decides when the guest is notified of packets: at once, or later for several packets together.
//!
//! This module is separate from the queue, so that it can be tested on virtual time. Like `rx-usecs` of a network
//! card, the interval begins with the first packet about which the guest was not notified.
//!
//! Contract: sans-IO; the caller reads the clock. At most the interval passes from [`Moderator::record`]
//! until [`Moderator::take_due`] returns `true`, if the owner calls `take_due` at the time
//! [`Moderator::poll_at`].

use std::time::Duration;

use rxo_frame::Instant;

/// Decides when the guest is notified. Stores the pending notification, if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moderator {
    interval: Duration,
    due_at: Option<Instant>,
    /// `true` if the next notification must not be delayed.
    is_urgent: bool,
}

impl Moderator {
    /// Creates a moderator that delays notifications by `interval`; zero delays none.
    pub(super) const fn new(interval: Duration) -> Self {
        Self { interval, due_at: None, is_urgent: false }
    }

    /// Records that packets were written for the guest at `now`.
    pub(super) fn record(&mut self, now: Instant) {
        self.due_at.get_or_insert(now + self.interval);
    }

    /// Makes the pending or next notification due at once, because the guest must post buffers before it can
    /// receive more packets.
    pub(super) const fn expedite(&mut self) {
        self.is_urgent = true;
    }

    /// Returns `true` if a notification is due at `now`, and clears it.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        let is_due = self.poll_at().is_some_and(|due_at| due_at <= now);
        if is_due {
            (self.due_at, self.is_urgent) = (None, false);
        }
        is_due
    }

    /// Returns the instant at which the pending notification is due; `None` if none is pending.
    pub(super) const fn poll_at(&self) -> Option<Instant> {
        if self.is_urgent && self.due_at.is_some() { Some(Instant::ZERO) } else { self.due_at }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn of_50_us() -> Moderator {
        Moderator::new(Duration::from_micros(50))
    }

    #[test]
    fn without_an_interval_each_batch_is_notified_at_once() {
        let mut moderator = Moderator::new(Duration::ZERO);
        assert!(!moderator.take_due(at(10)), "nothing came");
        for now in [at(10), at(10), at(11)] {
            moderator.record(now);
            assert!(moderator.take_due(now));
            assert_eq!(moderator.poll_at(), None);
        }
    }

    #[test]
    fn packets_of_an_interval_share_a_notification() {
        let mut moderator = of_50_us();
        [100, 120, 149].iter().for_each(|&micros| moderator.record(at(micros)));
        assert_eq!(moderator.poll_at(), Some(at(150)), "the first decides");
        assert!(!moderator.take_due(at(149)));
        assert!(moderator.take_due(at(150)));
        assert!(!moderator.take_due(at(150)), "once");
        moderator.record(at(160));
        assert_eq!(moderator.poll_at(), Some(at(210)));
    }

    #[test]
    fn a_guest_without_room_is_notified_at_once() {
        let mut moderator = of_50_us();
        moderator.record(at(100));
        moderator.expedite();
        assert!(moderator.take_due(at(100)));
        // A packet that finds the last buffer is recorded after this call.
        moderator.expedite();
        assert_eq!(moderator.poll_at(), None, "nothing is owed");
        moderator.record(at(200));
        assert!(moderator.take_due(at(200)));
        moderator.record(at(300));
        assert_eq!(moderator.poll_at(), Some(at(350)), "once");
    }

    proptest! {
        /// Compares with a list of all packets: none waits longer than the interval, and two notifications
        /// are at least the interval apart.
        #[test]
        fn no_packet_waits_longer_than_the_interval(
            gaps in proptest::collection::vec(0_u64..120, 1..200),
        ) {
            let (mut moderator, mut now) = (of_50_us(), 1_000);
            let (mut waiting, mut notified) = (Vec::new(), Vec::new());
            for gap in gaps {
                let next = now + gap;
                while let Some(due_at) = moderator.poll_at().filter(|due_at| *due_at <= at(next)) {
                    prop_assert!(moderator.take_due(due_at));
                    let waited = waiting.drain(..).map(|came| due_at.since(at(came)));
                    prop_assert_eq!(waited.max(), Some(Duration::from_micros(50)));
                    notified.push(due_at);
                }
                now = next;
                waiting.push(now);
                moderator.record(at(now));
            }
            let apart = |pair: &[Instant]| pair[1].since(pair[0]) >= Duration::from_micros(50);
            prop_assert!(notified.windows(2).all(apart));
            prop_assert_eq!(moderator.poll_at(), waiting.first().map(|came| at(came + 50)));
        }
    }
}
