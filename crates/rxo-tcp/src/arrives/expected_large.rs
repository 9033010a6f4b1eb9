//! A segment that stands for several, as a sender or a card with segmentation offload hands it over:
//! each counts, and the text stays in one piece.

use core::num::NonZeroU16;

use rxo_frame::Instant;

use super::expected_text::{Header, Run};
use crate::{Connection, Segment, SegmentOptions};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Takes `large`, which stands for segments with `size` bytes of text each, of which the last may
    /// have less: the same as [`Connection::on_aggregate`] with them. Does not allocate.
    ///
    /// # Errors
    /// `large` itself when it is not just what comes next; then it has to be cut.
    pub fn on_large(
        &mut self,
        now: Instant,
        large: Segment<B>,
        size: NonZeroU16,
    ) -> Result<(), Segment<B>> {
        let mut run = self.begin_run(now);
        let Some(header) = self.expects_large(&run, &large) else { return Err(large) };
        let Some(payload) = large.payload else { return Ok(()) };
        let bytes = payload.bytes();
        let size = u32::from(size.get()).min(bytes);
        self.rcv.append_large(payload, size);
        let (count, rest) = (bytes / size, bytes % size);
        self.take_headers(&mut run, header, &[(size, count), (rest, u32::from(rest > 0))]);
        self.end_run(&run);
        Ok(())
    }

    /// What its header says when it is what comes next.
    fn expects_large(&self, run: &Run, large: &Segment<B>) -> Option<Header> {
        let Segment { seq, ack, flags, window, options, ref payload, ecn, .. } = *large;
        let timestamp = options.timestamp;
        let header = Header { seq, ack, flags, window, timestamp, ecn };
        let is_plain = options == SegmentOptions { timestamp, ..SegmentOptions::default() };
        let bytes = payload.as_ref()?.bytes();
        (run.may_expect && is_plain && self.expects_text(header, bytes)).then_some(header)
    }
}
