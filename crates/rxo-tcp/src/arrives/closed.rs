//! CLOSED (RFC 9293, section 3.10.7.1).

use crate::segment::Segment;
use crate::{Connection, Reset};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Discards the segment, and answers anything but a reset by a reset.
    pub(super) fn arrives_closed(&mut self, segment: &Segment<B>) {
        self.reset = self.reset.or(Reset::answer(segment));
    }
}
