//! Decides whether a SYN may open a connection that replaces one in TIME-WAIT.

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

use super::Connection;
use crate::State;
use crate::segment::Segment;

/// The permission to replace a connection in TIME-WAIT: the sequence number from which its successor must
/// begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    pub(crate) iss_after: SeqNumber,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Returns the permission to replace this connection if it is in TIME-WAIT and `segment` is a SYN that
    /// may open a new one; otherwise `None`. With timestamps, the timestamp must be newer (RFC 6191, section
    /// 2); without them, the sequence number must be larger (RFC 9293, section 3.6.1). The owner then calls
    /// [`Connection::follow`] on a new connection in LISTEN, passes the SYN to it, and drops this connection.
    #[must_use]
    pub fn reuse_by(&self, segment: &Segment<B>) -> Option<Reuse> {
        let is_waiting = self.state == State::TimeWait;
        is_waiting.then(|| self.time_wait(Instant::ZERO).reuse_by(segment)).flatten()
    }
}
