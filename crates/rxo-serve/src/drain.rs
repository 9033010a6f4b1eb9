//! What was written and has not arrived: how long it may take.
//!
//! A connection takes more than its client does: megabytes may be on their way when an answer is written. The client
//! keeps its place until it has them, so that what it holds is counted, and is cut off only if it takes none of them for
//! too long, or too few, as while an answer is written.

use std::mem;
use std::time::Instant;

use crate::limits::Limits;

/// The rest of the answers that a client takes.
#[derive(Debug)]
pub(crate) struct Drain {
    /// Bytes on their way, as told last.
    told: u64,
    /// Bytes on their way, and since when so many.
    left: Option<(u64, Instant)>,
    /// The first of these.
    begun: Option<(u64, Instant)>,
    /// Whether its time is over unless it turns out to have taken something since it was asked.
    is_overdue: bool,
    /// Whether the client may still speak afterwards.
    pub(crate) may_speak: bool,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: everything has arrived.
    Over,
    /// Ask again, at this time or before.
    Until(Instant),
    /// The client is too slow.
    Late,
}

impl Drain {
    /// Nothing is known to be on its way. If something turns out to be, the client may speak afterwards in any case.
    pub(crate) const fn new(may_speak: bool) -> Self {
        Self { told: 0, left: None, begun: None, is_overdue: false, may_speak }
    }

    /// So many bytes are on their way.
    pub(crate) const fn told(&mut self, bytes: u64) {
        self.told = bytes;
    }

    /// Whether everything has arrived.
    pub(crate) const fn is_over(&self) -> bool {
        self.told == 0
    }

    /// What is to be done at `now`.
    pub(crate) fn next(&mut self, limits: &Limits, now: Instant) -> Wait {
        if self.is_over() {
            return Wait::Over;
        }
        self.may_speak = true;
        let (all, begun) = *self.begun.get_or_insert((self.told, now));
        let (_, since) = *match self.left {
            Some((left, _)) if left <= self.told => self.left.get_or_insert((self.told, now)),
            _ => self.left.insert((self.told, now)),
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

    /// How long a client may stay that takes so much each second of a megabyte.
    fn stays(taken_each_second: u64) -> (u64, Wait) {
        let (mut drain, begin) = (Drain::new(false), Instant::now());
        let limits = Limits::default();
        for second in 0.. {
            let now = begin + Duration::from_secs(second);
            drain.told(1_000_000_u64.saturating_sub(second * taken_each_second));
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

    /// When it was asked last it had taken nothing; that was a while ago.
    #[test]
    fn nobody_is_late_before_it_is_asked() {
        let (mut drain, begin, limits) = (Drain::new(true), Instant::now(), Limits::default());
        drain.told(1_000);
        let late = begin + Duration::from_secs(40);
        assert!(matches!(drain.next(&limits, begin), Wait::Until(_)));
        assert_eq!(drain.next(&Limits { least_rate: 0, ..limits }, late), Wait::Until(late));
        drain.told(999);
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
