//! Whether a SYN may open a new connection that replaces one in TIME-WAIT.

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

use super::Connection;
use crate::State;
use crate::segment::Segment;

/// What a connection that replaces one in TIME-WAIT must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    pub(crate) iss_after: SeqNumber,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Whether this connection is in TIME-WAIT and `segment` is a SYN that may open a new one: with
    /// timestamps if the timestamp of `segment` is newer (RFC 6191, section 2), without if its sequence
    /// number is larger (RFC 9293, section 3.6.1). The owner then calls [`Connection::follow`] on a new
    /// connection in LISTEN, gives it the SYN, and forgets this one.
    #[must_use]
    pub fn reuse_by(&self, segment: &Segment<B>) -> Option<Reuse> {
        let is_waiting = self.state == State::TimeWait;
        is_waiting.then(|| self.time_wait(Instant::ZERO).reuse_by(segment)).flatten()
    }
}
