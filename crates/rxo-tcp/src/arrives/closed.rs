//! The steps for a segment that arrives in CLOSED (RFC 9293, section 3.10.7.1).

use crate::segment::Segment;
use crate::{Connection, Reset};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Discards the segment. Answers it by a reset, unless it is a reset itself.
    pub(super) fn arrives_closed(&mut self, segment: &Segment<B>) {
        self.reset = self.reset.or(Reset::answer(segment));
    }
}
