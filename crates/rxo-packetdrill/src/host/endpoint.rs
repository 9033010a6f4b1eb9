//! A connection, and what the host knows of it beside the connection itself.

use rxo_tcp::{Connection, Failure, State};

use super::Fd;
use crate::abi::Errno;

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
    /// What the application has written and TCP_CORK or MSG_MORE hold back.
    pub(super) corked: Vec<u8>,
    /// Why it failed, until somebody was told.
    pub(super) error: Option<Errno>,
    /// The failure was noted.
    pub(super) is_failure_seen: bool,
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
            corked: Vec::new(),
            error: None,
            is_failure_seen: false,
        }
    }

    /// Notes what the connection has become.
    pub(super) fn look(&mut self) {
        self.was_open |= self.tcp.state().is_synchronized();
        if let State::Closed(closed) = self.tcp.state()
            && let Some(failure) = closed.failure
            && !self.is_failure_seen
        {
            self.is_failure_seen = true;
            self.error = Some(self.errno(failure));
        }
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

    /// Bytes that are written and not acknowledged.
    pub(super) fn unacknowledged(&self) -> u32 {
        (self.tcp.unacknowledged_bytes() + self.corked.len()) as u32
    }

    /// Whether nothing can come of it any more.
    pub(super) fn is_over(&self) -> bool {
        let gave_up_opening = self.tcp.state() == State::Listen;
        self.fd.is_none() && (self.tcp.is_closed() || gave_up_opening)
    }
}
