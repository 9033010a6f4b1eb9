//! What a sender waited for, in time: the last three times of TCP_INFO.

use rxo_frame::{Duration, Instant};

/// Time in each state so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stalls {
    /// Something was written and not acknowledged.
    pub(super) busy: Duration,
    /// Of that: the peer's window held data back.
    pub(super) by_window: Duration,
    /// Of that: the application waited for room, and all that it had written was sent.
    pub(super) by_buffer: Duration,
    state: Sender,
    since: Instant,
}

/// What the sender does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sender {
    /// Everything is acknowledged.
    #[default]
    Idle,
    /// Something is not.
    Busy,
    /// And the peer's window holds data back.
    HeldByWindow,
    /// And the buffer is too small for what the application has.
    HeldByBuffer,
}

impl Stalls {
    /// From `now` on the sender does `state`.
    pub(super) fn enter(&mut self, state: Sender, now: Instant) {
        *self = Self { state, since: now, ..self.until(now) };
    }

    /// The times with the state that lasts counted up to `now`.
    pub(super) fn until(&self, now: Instant) -> Self {
        let (mut next, lasted) = (*self, now.since(self.since));
        match self.state {
            Sender::Idle => return next,
            Sender::Busy => {}
            Sender::HeldByWindow => next.by_window += lasted,
            Sender::HeldByBuffer => next.by_buffer += lasted,
        }
        next.busy += lasted;
        next.since = now;
        next
    }
}
