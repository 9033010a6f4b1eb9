//! The fast path for a GSO frame that continues the received data. Every original segment counts; the data
//! stays in one buffer.

use rxo_frame::Instant;

use super::expected_text::{Header, Run};
use crate::{Connection, GsoSegment, Segment};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Processes a GSO frame as a whole if it is the next expected data. Otherwise processes its segments by
    /// the numbered steps.
    #[inline(never)]
    pub(super) fn take_gso(&mut self, now: Instant, mut gso: GsoSegment<B>) {
        let mut run = self.begin_run(now);
        let header = gso.rest.as_ref().and_then(|whole| self.expects_gso(&run, whole));
        let Some(header) = header else {
            return gso.for_each(|segment| self.take_segment(now, segment));
        };
        let Some(payload) = gso.rest.take().and_then(|whole| whole.payload) else { return };
        let bytes = payload.bytes();
        let size = u32::from(gso.size.get()).min(bytes);
        self.rcv.append_expected(payload, size);
        let (count, rest) = (bytes / size, bytes % size);
        self.take_headers(&mut run, header, &[(size, count), (rest, u32::from(rest > 0))]);
    }

    /// Returns the header values of the GSO frame `whole` if it is the next expected data, otherwise `None`.
    fn expects_gso(&self, run: &Run, whole: &Segment<B>) -> Option<Header> {
        let Segment { seq, ack, flags, window, options, ref payload, ecn, .. } = *whole;
        let timestamp = options.timestamp;
        let header = Header { seq, ack, flags, window, timestamp, ecn };
        let bytes = payload.as_ref()?.bytes();
        let may_expect = run.may_expect && options.is_plain();
        (may_expect && self.expects_text(header, bytes)).then_some(header)
    }
}
