//! Answers of guests' workers, gathered while the hub goes on.
//!
//! It is separate because the hub is asked one question, and each guest has the answer to a part of it. Contract: nobody
//! waits. Who has not answered in time counts as silent.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use rxo_frame::Instant;

use crate::desk::Reply;
use crate::worker::reading::Due;
use crate::worker::{Misfit, Moment, PolicyInForce, Readings};

/// How long answers are waited for. A guest's worker has a turn at once when it is asked.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);

/// One question to each guest.
pub(super) struct Asked<A> {
    places: Vec<Place<A>>,
    until: Instant,
}

/// The answer of one guest.
pub(super) enum Place<A> {
    Awaited(Receiver<A>),
    Has(A),
    Silent,
}

/// What is gathered, and who wants it.
pub(super) enum Gathering {
    Report(Due, Asked<Readings>),
    Counters(Reply<Readings>, Asked<Readings>),
    Policies(Reply<Vec<PolicyInForce>>, Asked<Vec<PolicyInForce>>),
    Change(Reply<Result<Moment, Misfit>>, Asked<Result<Moment, Misfit>>),
    Coalesce(Reply<Moment>, Asked<Moment>),
}

impl<A> Asked<A> {
    pub(super) fn new(places: Vec<Place<A>>, now: Instant) -> Self {
        Self { places, until: now + PATIENCE }
    }

    /// Takes what has come. Returns whether nothing more is waited for.
    fn is_complete(&mut self, now: Instant) -> bool {
        for place in &mut self.places {
            if let Place::Awaited(answer) = place
                && let Ok(answer) = answer.try_recv()
            {
                *place = Place::Has(answer);
            }
        }
        now >= self.until || !self.places.iter().any(|it| matches!(it, Place::Awaited(_)))
    }

    /// The answers, in the order of the guests; `None` of those who are silent.
    pub(super) fn into_answers(self) -> impl Iterator<Item = Option<A>> {
        self.places.into_iter().map(|place| match place {
            Place::Has(answer) => Some(answer),
            Place::Awaited(_) | Place::Silent => None,
        })
    }
}

impl Gathering {
    /// Takes what has come. Returns whether nothing more is waited for.
    pub(super) fn is_complete(&mut self, now: Instant) -> bool {
        match self {
            Self::Report(_, asked) | Self::Counters(_, asked) => asked.is_complete(now),
            Self::Policies(_, asked) => asked.is_complete(now),
            Self::Change(_, asked) => asked.is_complete(now),
            Self::Coalesce(_, asked) => asked.is_complete(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_silent_delays_the_others_for_a_bounded_time() {
        let (now, later) = (Instant::from_micros(5), Instant::from_micros(5) + PATIENCE);
        let ((reply, answer), (_silent, never)) = (Reply::new(), Reply::new());
        let places = vec![Place::Awaited(answer), Place::Silent, Place::Awaited(never)];
        let mut asked = Asked::new(places, now);
        assert!(!asked.is_complete(now));
        reply.give(7);
        assert!(!asked.is_complete(now) && asked.is_complete(later));
        assert_eq!(asked.into_answers().collect::<Vec<_>>(), [Some(7), None, None]);
    }

    #[test]
    fn answers_that_are_all_there_are_not_waited_for() {
        let (reply, answer) = Reply::new();
        let mut asked = Asked::new(vec![Place::Silent, Place::Awaited(answer)], Instant::ZERO);
        reply.give(7);
        assert!(asked.is_complete(Instant::ZERO));
    }
}
