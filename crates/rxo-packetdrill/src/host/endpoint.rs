//! A connection, and what the host knows of it beside the connection itself.

use rxo_frame::Instant;
use rxo_tcp::{Connection, Failure, State};
use rxo_wire::SeqNumber;

use super::Fd;
use super::outbox::Outbox;
use super::record::Record;
use super::stalls::{Sender, Stalls};
use crate::abi::{Errno, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP};

/// One connection of the host; it may have lost its descriptor and live on.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) tcp: Connection<Vec<u8>>,
    /// The descriptor of the application; `None` before it is accepted, and once it is closed.
    pub(super) fd: Option<Fd>,
    /// The listener that made it, until it is accepted.
    pub(super) listener: Option<Fd>,
    /// It stands in its listener's queue.
    pub(super) is_queued: bool,
    /// It was open once.
    pub(super) was_open: bool,
    /// The application reads no more: SHUT_RD.
    pub(super) is_read_shut: bool,
    /// What the application has written and the connection has not got yet.
    pub(super) outbox: Outbox,
    /// The application writes no more: SHUT_WR.
    pub(super) is_write_shut: bool,
    /// TCP_CORK is on.
    pub(super) is_corked: bool,
    /// Nagle's rule is off.
    pub(super) is_nagle_off: bool,
    /// When held-back text leaves although it fills no segment.
    pub(super) release_at: Option<Instant>,
    /// The application found no room, and was not told of any since.
    pub(super) wants_room: bool,
    /// What happened that an edge-triggered waiter has not been told.
    pub(super) signals: i16,
    /// Totals for TCP_INFO.
    pub(super) record: Record,
    /// Times for TCP_INFO.
    pub(super) stalls: Stalls,
    /// What the last look has seen, for signals.
    pub(super) looked: Looked,
    /// Why it failed, until somebody was told.
    pub(super) error: Option<Errno>,
    /// The failure was noted.
    pub(super) is_failure_seen: bool,
}

/// What decides whether somebody who waits is told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looked {
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
            looked: Looked::default(),
            error: None,
            is_failure_seen: false,
        }
    }

    /// Notes what the connection has become.
    pub(super) fn look(&mut self) {
        self.was_open |= self.tcp.state().is_synchronized();
        let now = Looked {
            received_to: Some(self.tcp.received_to()).filter(|_| self.was_open),
            is_open: self.was_open,
            is_closed: self.tcp.is_closed(),
        };
        let last = core::mem::replace(&mut self.looked, now);
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

    /// Takes `now` for the times that a sender spends waiting.
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

    /// As Linux says it: a reset after the peer was done is a broken pipe.
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

    /// When [`Endpoint::on_time`] has something to do; `None` is never.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        let timers = [self.tcp.poll_at(), self.release_at];
        timers.into_iter().flatten().min()
    }

    /// Time has come to `now`.
    pub(super) fn on_time(&mut self, now: Instant) {
        if self.tcp.poll_at().is_some_and(|at| at <= now) {
            self.tcp.on_timeout(now);
        }
        if self.release_at.is_some_and(|at| at <= now) {
            self.release();
        }
    }

    /// Bytes that are written and not acknowledged.
    pub(super) fn unacknowledged(&self) -> u32 {
        (self.tcp.unacknowledged_bytes() + self.outbox.len()) as u32
    }

    /// Whether nothing can come of it any more.
    pub(super) fn is_over(&self) -> bool {
        let gave_up_opening = self.tcp.state() == State::Listen;
        self.fd.is_none() && (self.tcp.is_closed() || gave_up_opening)
    }
}
