//! Limits the time in which written bytes must arrive at the client.
//!
//! A connection buffers more than its client has received: megabytes may be in flight when an answer is
//! written. Because these bytes occupy memory, the client counts towards the limits until it has received all
//! of them. The connection is reset only if the client accepts no bytes for too long, or too few, by the same
//! limits as while an answer is written.

use std::mem;
use std::time::Instant;

use crate::limits::Limits;

/// The bytes that were written but that the client has not received.
#[derive(Debug)]
pub(crate) struct Drain {
    /// The number of bytes in flight to the client according to the last report.
    in_flight: u64,
    /// The number of bytes in flight, and the time since which this number has not decreased; `None` before
    /// the first check.
    left: Option<(u64, Instant)>,
    /// The number of bytes in flight at the first check, and the time of that check; `None` before the first
    /// check.
    begun: Option<(u64, Instant)>,
    /// `true` if the deadline has passed; the client is reset unless the next report shows progress.
    is_overdue: bool,
    /// `true` if the client may send further bytes after the written bytes have arrived. [`Drain::next`] sets
    /// the field if bytes are in flight.
    pub(crate) may_speak: bool,
}

/// The next action while written bytes are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// All written bytes have arrived.
    Over,
    /// The owner must report the number of bytes in flight again, no later than at this time.
    Until(Instant),
    /// The client accepts bytes too slowly; its connection must be reset.
    Late,
}

impl Drain {
    /// Creates the state without bytes in flight. `may_speak` is the initial value of the field of that name.
    pub(crate) const fn new(may_speak: bool) -> Self {
        Self { in_flight: 0, left: None, begun: None, is_overdue: false, may_speak }
    }

    /// Records the reported number of bytes in flight.
    pub(crate) const fn set_in_flight(&mut self, bytes: u64) {
        self.in_flight = bytes;
    }

    /// Returns `true` if all written bytes have arrived.
    pub(crate) const fn is_complete(&self) -> bool {
        self.in_flight == 0
    }

    /// Returns the next action at the time `now`.
    pub(crate) fn next(&mut self, limits: &Limits, now: Instant) -> Wait {
        if self.is_complete() {
            return Wait::Over;
        }
        self.may_speak = true;
        let (all, begun) = *self.begun.get_or_insert((self.in_flight, now));
        let (_, since) = *match self.left {
            Some((left, _)) if left <= self.in_flight => {
                self.left.get_or_insert((self.in_flight, now))
            }
            _ => self.left.insert((self.in_flight, now)),
        };
        let until = limits.deadline(since, begun, all);
        if now < until {
            self.is_overdue = false;
            return Wait::Until(until.min(now + limits.linger));
        }
        if mem::replace(&mut self.is_overdue, true) { Wait::Late } else { Wait::Until(now) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns the time, in seconds, and the outcome for a client that accepts `taken_each_second` bytes per
    /// second of a megabyte.
    fn stays(taken_each_second: u64) -> (u64, Wait) {
        let (mut drain, begin) = (Drain::new(false), Instant::now());
        let limits = Limits::default();
        for second in 0.. {
            let now = begin + Duration::from_secs(second);
            drain.set_in_flight(1_000_000_u64.saturating_sub(second * taken_each_second));
            let mut wait = drain.next(&limits, now);
            if wait == Wait::Until(now) {
                wait = drain.next(&limits, now);
                assert_eq!(wait, Wait::Late, "it was asked once more");
            }
            match wait {
                Wait::Until(until) => {
                    assert_eq!(until, now + Duration::from_secs(1), "it is asked again");
                }
                end => return (second, end),
            }
        }
        unreachable!("it ends");
    }

    #[test]
    fn whoever_takes_enough_gets_everything() {
        assert_eq!(stays(1_000_000), (1, Wait::Over));
        assert_eq!(stays(4_000), (250, Wait::Over));
        assert_eq!(stays(0), (30, Wait::Late), "nothing for as long as a piece may take");
        assert_eq!(stays(1_000), (280, Wait::Late), "less than the least rate");
    }

    /// The last report, without progress, is old: the client gets another one before it is reset.
    #[test]
    fn nobody_is_late_before_it_is_asked() {
        let (mut drain, begin, limits) = (Drain::new(true), Instant::now(), Limits::default());
        drain.set_in_flight(1_000);
        let late = begin + Duration::from_secs(40);
        assert!(matches!(drain.next(&limits, begin), Wait::Until(_)));
        assert_eq!(drain.next(&Limits { least_rate: 0, ..limits }, late), Wait::Until(late));
        drain.set_in_flight(999);
        let wait = drain.next(&Limits { least_rate: 0, ..limits }, late);
        assert_eq!(wait, Wait::Until(late + limits.linger));
    }

    #[test]
    fn where_nothing_is_on_its_way_nothing_is_waited_for() {
        for may_speak in [false, true] {
            let mut drain = Drain::new(may_speak);
            assert_eq!(drain.next(&Limits::default(), Instant::now()), Wait::Over);
            assert_eq!(drain.may_speak, may_speak);
        }
    }
}
