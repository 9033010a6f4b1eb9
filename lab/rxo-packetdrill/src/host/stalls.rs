//! The times that a sender spent waiting, for TCP_INFO.

use rxo_frame::{Duration, Instant};

/// Time in each state so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stalls {
    /// Time with unacknowledged data.
    pub(super) busy: Duration,
    /// The part of it in which the peer's window limited the sender.
    pub(super) by_window: Duration,
    /// The part of it in which the application waited for room while everything written was sent.
    pub(super) by_buffer: Duration,
    state: Sender,
    since: Instant,
}

/// The state of the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sender {
    /// Everything is acknowledged.
    #[default]
    Idle,
    /// Some data is unacknowledged.
    Busy,
    /// Data is unacknowledged, and the peer's window limits the sender.
    HeldByWindow,
    /// Data is unacknowledged, and the send buffer limits the application.
    HeldByBuffer,
}

impl Stalls {
    /// Enters `state` at `now`.
    pub(super) fn enter(&mut self, state: Sender, now: Instant) {
        *self = Self { state, since: now, ..self.until(now) };
    }

    /// The times, with the current state counted up to `now`.
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
