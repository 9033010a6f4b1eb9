//! A connection, and what the host knows about it.

use rxo_frame::Instant;
use rxo_tcp::{Connection, Failure, State};
use rxo_wire::SeqNumber;

use super::Fd;
use super::outbox::Outbox;
use super::record::Record;
use super::stalls::{Sender, Stalls};
use crate::abi::{Errno, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP};

/// One connection of the host. It may live on after its descriptor is closed.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) tcp: Connection<Vec<u8>>,
    /// The application's descriptor; `None` before the connection is accepted and after it is
    /// closed.
    pub(super) fd: Option<Fd>,
    /// The listener that created it, until it is accepted.
    pub(super) listener: Option<Fd>,
    /// Whether it is in its listener's queue.
    pub(super) is_queued: bool,
    /// Whether it has ever been open.
    pub(super) was_open: bool,
    /// Whether the application has shut down reading (SHUT_RD).
    pub(super) is_read_shut: bool,
    /// Written data that the connection does not have yet.
    pub(super) outbox: Outbox,
    /// Whether the application has shut down writing (SHUT_WR).
    pub(super) is_write_shut: bool,
    /// Whether TCP_CORK is on.
    pub(super) is_corked: bool,
    /// Whether Nagle's algorithm is off.
    pub(super) is_nagle_off: bool,
    /// When held-back data is sent although it does not fill a segment.
    pub(super) release_at: Option<Instant>,
    /// Whether the application found no room and has not been notified of any since.
    pub(super) wants_room: bool,
    /// Events that edge-triggered waiters have not been notified of.
    pub(super) signals: i16,
    /// Totals for TCP_INFO.
    pub(super) record: Record,
    /// Times for TCP_INFO.
    pub(super) stalls: Stalls,
    /// The state at the last check, for finding new events.
    pub(super) last_seen: Noticed,
    /// Why it failed, until the application has been told.
    pub(super) error: Option<Errno>,
    /// Whether the failure has been recorded.
    pub(super) is_failure_seen: bool,
}

/// The state that determines whether waiters are notified.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noticed {
    received_to: Option<SeqNumber>,
    is_open: bool,
    is_closed: bool,
}

impl Endpoint {
    pub(super) fn new(tcp: Connection<Vec<u8>>) -> Self {
        Self {
            tcp,
            fd: None,
            listener: None,
            is_queued: false,
            was_open: false,
            is_read_shut: false,
            outbox: Outbox::default(),
            is_write_shut: false,
            is_corked: false,
            is_nagle_off: false,
            release_at: None,
            wants_room: false,
            signals: 0,
            record: Record::default(),
            stalls: Stalls::default(),
            last_seen: Noticed::default(),
            error: None,
            is_failure_seen: false,
        }
    }

    /// Compares the connection with the last check, and records new events.
    pub(super) fn record_events(&mut self) {
        self.was_open |= self.tcp.state().is_synchronized();
        let now = Noticed {
            received_to: Some(self.tcp.received_to()).filter(|_| self.was_open),
            is_open: self.was_open,
            is_closed: self.tcp.is_closed(),
        };
        let last = core::mem::replace(&mut self.last_seen, now);
        if last.received_to != now.received_to {
            self.signals |= POLLIN | if self.tcp.is_peer_done() { POLLRDHUP } else { 0 };
        }
        if (last.is_open, last.is_closed) != (now.is_open, now.is_closed) {
            self.signals |= POLLIN | POLLOUT | POLLERR | POLLHUP;
        }
        if let State::Closed(closed) = self.tcp.state()
            && let Some(failure) = closed.failure
            && !self.is_failure_seen
        {
            self.is_failure_seen = true;
            self.error = Some(self.errno(failure));
        }
    }

    /// Counts the time until `now` for what the sender is waiting for.
    pub(super) fn watch_sender(&mut self, now: Instant) {
        let seen = self.tcp.statistics();
        self.record.follow(&seen, self.tcp.state().is_synchronized(), now);
        let outstanding = (seen.snd_nxt - seen.snd_una).max(0) as u32;
        let usable = seen.snd_wnd.saturating_sub(outstanding);
        let allowed = seen.cwnd.saturating_sub(seen.in_flight);
        let is_held = usable < seen.unsent.min(seen.mss) && usable < allowed;
        let state = match seen.unsent {
            _ if self.unacknowledged() == 0 => Sender::Idle,
            0 if self.wants_room && self.outbox.is_empty() => Sender::HeldByBuffer,
            1.. if is_held => Sender::HeldByWindow,
            _ => Sender::Busy,
        };
        self.stalls.enter(state, now);
    }

    /// The error of a failure as Linux reports it: a reset after the peer's FIN is a broken pipe.
    fn errno(&self, failure: Failure) -> Errno {
        match failure {
            Failure::Reset if self.tcp.is_peer_done() => Errno::EPIPE,
            Failure::Reset => Errno::ECONNRESET,
            Failure::Refused => Errno::ECONNREFUSED,
            Failure::TimedOut => Errno::ETIMEDOUT,
            Failure::Unreachable => Errno::EHOSTUNREACH,
            _ => Errno::ECONNABORTED,
        }
    }

    /// When [`Endpoint::on_time`] has something to do; `None` for never.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        let timers = [self.tcp.poll_at(), self.release_at];
        timers.into_iter().flatten().min()
    }

    /// Handles timers that are due by `now`.
    pub(super) fn on_time(&mut self, now: Instant) {
        if self.tcp.poll_at().is_some_and(|at| at <= now) {
            self.tcp.on_timeout(now);
        }
        if self.release_at.is_some_and(|at| at <= now) {
            self.release();
        }
    }

    /// Bytes that were written and not acknowledged.
    pub(super) fn unacknowledged(&self) -> u32 {
        (self.tcp.unacknowledged_bytes() + self.outbox.len()) as u32
    }

    /// Whether the connection can be removed.
    pub(super) fn is_over(&self) -> bool {
        let gave_up_opening = self.tcp.state() == State::Listen;
        self.fd.is_none() && (self.tcp.is_closed() || gave_up_opening)
    }
}
