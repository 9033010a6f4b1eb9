//! Gather: collects the answers of guests' workers while the hub, the loop with the nic and the switch,
//! continues to run.
//!
//! This module is separate because the hub is asked one question, and each guest knows a part of the answer.
//! Contract: no thread blocks. A guest that has not answered within [`ANSWER_TIMEOUT`] counts as silent.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use rxo_frame::Instant;

use crate::desk::Reply;
use crate::worker::reading::Due;
use crate::worker::{Misfit, Moment, PolicyInForce, Readings};

/// Maximum time to wait for the answers. A guest's worker answers in its next turn, which begins at once when
/// it is asked.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_millis(50);

/// A question that was sent to each guest, and the answers so far.
pub(super) struct Asked<A> {
    places: Vec<Place<A>>,
    until: Instant,
}

/// The state of one guest's answer: awaited, received, or missing because the guest is silent.
pub(super) enum Place<A> {
    Awaited(Receiver<A>),
    Has(A),
    Silent,
}

/// The question whose answers are being collected, and the reply to give when the answers are complete.
pub(super) enum Gathering {
    Report(Due, Asked<Readings>),
    Counters(Reply<Readings>, Asked<Readings>),
    Policies(Reply<Vec<PolicyInForce>>, Asked<Vec<PolicyInForce>>),
    Change(Reply<Result<Moment, Misfit>>, Asked<Result<Moment, Misfit>>),
    Coalesce(Reply<Moment>, Asked<Moment>),
}

impl<A> Asked<A> {
    pub(super) fn new(places: Vec<Place<A>>, now: Instant) -> Self {
        Self { places, until: now + ANSWER_TIMEOUT }
    }

    /// Receives the answers that have arrived. Returns `true` if the answer to the whole question can be
    /// given.
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

    /// Returns the answers, in the order of the guests; `None` for each guest that is silent.
    pub(super) fn into_answers(self) -> impl Iterator<Item = Option<A>> {
        self.places.into_iter().map(|place| match place {
            Place::Has(answer) => Some(answer),
            Place::Awaited(_) | Place::Silent => None,
        })
    }
}

impl Gathering {
    /// Receives the answers that have arrived. Returns `true` if no further answers are awaited.
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
        let (now, later) = (Instant::from_micros(5), Instant::from_micros(5) + ANSWER_TIMEOUT);
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
