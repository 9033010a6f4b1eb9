//! Replays the packets of one interface to one engine, for callers that examine every delivery. The polls are
//! the same as in a lane of a study.

use core::fmt;

use rxo_coalesce::rules::{RuleEngine, Rules};
use rxo_coalesce::{Counters, Deliveries, Engine};
use rxo_frame::{Frame, Instant};

use super::point::ASSUMED_LOAD;
use super::poll::{Poll, PollRule, Polls};
use crate::numbered::Numbered;

/// A consumer of deliveries. This type is a trait object and no type parameter, so that the engine is compiled
/// once in this crate, and not in each crate that chooses an output.
pub(crate) type Take<'a> = &'a mut dyn FnMut(Deliveries<'_, Numbered>);

/// An engine to which packets are replayed: the fast engine of a policy, or the generic engine of rules.
pub(crate) trait Receive {
    /// Receives the frames of a poll at `at`, and ends the poll.
    fn poll(&mut self, batch: &mut Vec<Frame<Numbered>>, at: Instant, sink: Take<'_>);
    /// Returns the next deadline of the engine; `None` if there is none.
    fn poll_at(&self) -> Option<Instant>;
    /// Delivers the packets whose deadlines have passed at `at`.
    fn on_timeout(&mut self, at: Instant, sink: Take<'_>);
    /// Delivers all packets that the engine holds.
    fn flush(&mut self, at: Instant, sink: Take<'_>);
    /// Returns the counters of the engine.
    fn counters(&self) -> &Counters;
}

impl Receive for Engine<Numbered> {
    fn poll(&mut self, batch: &mut Vec<Frame<Numbered>>, at: Instant, sink: Take<'_>) {
        self.poll_under(ASSUMED_LOAD, batch, at, sink);
    }

    fn poll_at(&self) -> Option<Instant> {
        self.poll_at()
    }

    fn on_timeout(&mut self, at: Instant, sink: Take<'_>) {
        self.on_timeout(at, sink);
    }

    fn flush(&mut self, at: Instant, sink: Take<'_>) {
        self.flush(at, sink);
    }

    fn counters(&self) -> &Counters {
        self.counters()
    }
}

impl<R: Rules> Receive for RuleEngine<R, Numbered> {
    fn poll(&mut self, batch: &mut Vec<Frame<Numbered>>, at: Instant, sink: Take<'_>) {
        self.poll(batch, at, sink);
    }

    fn poll_at(&self) -> Option<Instant> {
        self.poll_at()
    }

    fn on_timeout(&mut self, at: Instant, sink: Take<'_>) {
        self.on_timeout(at, sink);
    }

    fn flush(&mut self, at: Instant, sink: Take<'_>) {
        self.flush(at, sink);
    }

    fn counters(&self) -> &Counters {
        self.counters()
    }
}

/// The engine and the polls of one interface.
pub(crate) struct Replay {
    engine: Box<dyn Receive>,
    polls: Polls,
    /// The packets that wait for the next poll.
    waiting: Vec<Frame<Numbered>>,
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("polls", &self.polls).finish_non_exhaustive()
    }
}

impl Replay {
    /// Creates a replay to `engine`, which is polled by the rule `poll`.
    pub(crate) fn new(engine: Box<dyn Receive>, poll: PollRule) -> Self {
        Self { engine, polls: Polls::new(poll), waiting: Vec::new() }
    }

    /// Returns the counters of the engine.
    pub(crate) fn counters(&self) -> &Counters {
        self.engine.counters()
    }

    /// Adds a received packet, after running the polls that are due before it.
    pub(crate) fn push(&mut self, frame: Frame<Numbered>, sink: Take<'_>) {
        let at = frame.arrived_at;
        self.run_due(at, sink);
        self.waiting.push(frame);
        if let Some(poll) = self.polls.after(at) {
            self.run(poll, sink);
        }
    }

    /// Runs the polls and engine deadlines that are due at `now`.
    pub(crate) fn advance(&mut self, now: Instant, sink: Take<'_>) {
        self.run_due(now, sink);
        if self.polls.waiting() == 0 {
            self.catch_up(now, sink);
        }
    }

    /// Flushes all packets that the engine holds, as at the end of the capture.
    pub(crate) fn empty(&mut self, now: Instant, sink: Take<'_>) {
        let mut end = now;
        while let Some(poll) = self.polls.rest() {
            self.run(poll, sink);
            end = end.max(poll.at);
        }
        self.catch_up(end, sink);
        self.engine.flush(end, sink);
    }

    fn run_due(&mut self, at: Instant, sink: Take<'_>) {
        while let Some(poll) = self.polls.before(at) {
            self.run(poll, sink);
        }
    }

    fn run(&mut self, poll: Poll, sink: Take<'_>) {
        self.catch_up(poll.at, sink);
        let rest = self.waiting.split_off(self.waiting.len().min(poll.packets as usize));
        let mut batch = core::mem::replace(&mut self.waiting, rest);
        self.engine.poll(&mut batch, poll.at, sink);
    }

    /// Flushes the flows that are due at every deadline of the engine up to `until`.
    fn catch_up(&mut self, until: Instant, sink: Take<'_>) {
        while let Some(deadline) = self.engine.poll_at().filter(|deadline| *deadline <= until) {
            self.engine.on_timeout(deadline, sink);
            if self.engine.poll_at().is_some_and(|next| next <= deadline) {
                // At the end of time deadlines no longer advance. `empty` delivers the rest.
                return;
            }
        }
    }
}
