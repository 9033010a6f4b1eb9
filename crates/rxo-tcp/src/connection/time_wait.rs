//! Decides whether a SYN may open a connection that replaces one in TIME-WAIT.

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

use super::Connection;
use crate::State;
use crate::segment::Segment;

/// The sequence number that a connection needs to replace one in TIME-WAIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    pub(crate) iss_after: SeqNumber,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Returns `Some` if this connection is in TIME-WAIT and `segment` is a SYN that may open a new one. With
    /// timestamps, the timestamp must be newer (RFC 6191, section 2); without, the sequence number must be
    /// larger (RFC 9293, section 3.6.1). The owner then calls [`Connection::follow`] on a new connection in
    /// LISTEN, passes the SYN to it, and drops this connection.
    #[must_use]
    pub fn reuse_by(&self, segment: &Segment<B>) -> Option<Reuse> {
        let is_waiting = self.state == State::TimeWait;
        is_waiting.then(|| self.time_wait(Instant::ZERO).reuse_by(segment)).flatten()
    }
}
