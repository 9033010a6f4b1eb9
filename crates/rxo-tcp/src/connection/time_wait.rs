//! When a SYN may start a new connection in the place of one in TIME-WAIT.

use rxo_frame::Instant;
use rxo_wire::SeqNumber;

use super::Connection;
use crate::State;
use crate::segment::Segment;

/// What a connection that takes the place of one in TIME-WAIT must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reuse {
    pub(crate) iss_after: SeqNumber,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Whether `segment` is a SYN that may start a new connection while this one is in TIME-WAIT:
    /// with timestamps when its own is newer (RFC 6191, section 2), without when its sequence number
    /// is larger (RFC 9293, section 3.6.1). The owner then gives the SYN to a new connection in
    /// LISTEN, after [`Connection::follow`], and forgets this one.
    #[must_use]
    pub fn reuse_by(&self, segment: &Segment<B>) -> Option<Reuse> {
        let is_waiting = self.state == State::TimeWait;
        is_waiting.then(|| self.time_wait(Instant::ZERO).reuse_by(segment)).flatten()
    }
}
