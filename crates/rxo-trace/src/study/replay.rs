//! A lane: the engine and the polls of one interface. The rules are those of [`study`](crate::study), but every
//! delivery is examined packet by packet.

use rxo_coalesce::{ConfigError, Deliveries, Engine};
use rxo_frame::{Frame, Instant, LinkKind};

use super::Settings;
use crate::numbered::Numbered;
use crate::study::{ASSUMED_LOAD, ChecksumMode, Poll, Polls};

/// A consumer of deliveries. Not a type parameter, so that the engine is compiled in this crate once, and not in each
/// crate that chooses an output.
type Take<'a> = &'a mut dyn FnMut(Deliveries<'_, Numbered>);

/// An interface with its engine and its polls.
#[derive(Debug)]
pub(super) struct Lane {
    engine: Engine<Numbered>,
    polls: Polls,
    /// The packets that wait for the next poll.
    waiting: Vec<Frame<Numbered>>,
}

impl Lane {
    /// Creates a lane with an engine for packets whose first header is `link`.
    pub(super) fn new(settings: &Settings, link: LinkKind) -> Result<Self, ConfigError> {
        let trust = settings.checksums == ChecksumMode::Trust;
        let config = settings.point.config(link, trust, settings.seed);
        let polls = Polls::new(settings.point.poll);
        Ok(Self { engine: Engine::new(config)?, polls, waiting: Vec::new() })
    }

    /// Adds a received packet, after running the polls that are due before it.
    pub(super) fn push(&mut self, frame: Frame<Numbered>, sink: Take<'_>) {
        let at = frame.arrived_at;
        self.run_due(at, sink);
        self.waiting.push(frame);
        if let Some(poll) = self.polls.after(at) {
            self.run(poll, sink);
        }
    }

    /// Runs the polls and engine deadlines that are due at `now`.
    pub(super) fn advance(&mut self, now: Instant, sink: Take<'_>) {
        self.run_due(now, sink);
        if self.polls.waiting() == 0 {
            self.catch_up(now, sink);
        }
    }

    /// Flushes all packets that the engine holds, as at the end of the capture.
    pub(super) fn empty(&mut self, now: Instant, sink: Take<'_>) {
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
        self.engine.poll_under(ASSUMED_LOAD, &mut batch, poll.at, sink);
    }

    /// Flushes the flows that are due at every deadline of the engine up to `until`.
    fn catch_up(&mut self, until: Instant, sink: Take<'_>) {
        while let Some(deadline) = self.engine.poll_at().filter(|deadline| *deadline <= until) {
            self.engine.on_timeout(deadline, &mut *sink);
            if self.engine.poll_at().is_some_and(|next| next <= deadline) {
                // At the end of time deadlines no longer advance. `empty` delivers the rest.
                return;
            }
        }
    }
}
