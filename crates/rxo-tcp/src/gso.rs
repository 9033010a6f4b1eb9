//! A GSO frame as the connection sees it: one segment in memory, several in sequence space.
//!
//! Separate because two parts of the endpoint process GSO frames. The fast path processes a GSO frame as a
//! whole and needs only the segment size. The numbered steps process its original segments, which share one
//! buffer.

use core::num::NonZeroU16;

use rxo_wire::segmentation::{Parts, parts};

use crate::segment::{Payload, Segment};

/// A GSO frame, as a local sender or a device with LRO delivers it: segments with `size` bytes of data each,
/// except that the last may have less.
///
/// A `GsoSegment` is an iterator that yields the original segments, with the flags that
/// [`Part::flags`](rxo_wire::segmentation::Part::flags) assigns.
#[derive(Clone, Debug)]
pub struct GsoSegment<B> {
    /// The rest of the GSO frame: the data that has not been yielded, with the flags of the whole frame.
    /// `None` once everything has been yielded.
    pub(crate) rest: Option<Segment<B>>,
    /// The payload size of a full segment, in bytes.
    pub(crate) size: NonZeroU16,
    /// The parts of the payload that have not been yielded as segments.
    parts: Parts,
    share: fn(B) -> (B, B),
}

impl<B> GsoSegment<B> {
    /// Creates a GSO frame from `whole`, with segments of `size` bytes. `share` turns one buffer into two that
    /// contain the same bytes. `share` is called only if the segments are yielded one by one.
    pub fn new(whole: Segment<B>, size: NonZeroU16, share: fn(B) -> (B, B)) -> Self {
        let parts = parts(whole.text_bytes() as usize, size);
        Self { rest: Some(whole), size, parts, share }
    }
}

impl<B> Iterator for GsoSegment<B> {
    type Item = Segment<B>;

    fn next(&mut self) -> Option<Segment<B>> {
        let mut segment = self.rest.take()?;
        let Some(part) = self.parts.next() else { return Some(segment) };
        let whole = segment.flags;
        segment.flags = part.flags(whole);
        if part.is_last {
            return Some(segment);
        }
        let (buffer, range) = segment.payload.take()?.into_parts();
        let ((front, back), cut) = ((self.share)(buffer), range.start + part.bytes);
        let (seq, payload) =
            (segment.seq + part.bytes as u32, Payload::known(back, cut..range.end));
        self.rest = Some(Segment { seq, flags: whole, payload, ..segment });
        segment.payload = Payload::known(front, range.start..cut);
        Some(segment)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use rxo_frame::Instant;
    use rxo_wire::{SeqNumber, TcpFlags};

    use super::*;
    use crate::{Ecn, SegmentOptions};

    fn segment(text: usize, flags: TcpFlags) -> Segment<Vec<u8>> {
        Segment {
            seq: SeqNumber(u32::MAX),
            ack: SeqNumber(7),
            flags,
            window: 9,
            options: SegmentOptions::default(),
            payload: Payload::new((0..text as u8 + 3).collect(), 3..3 + text),
            ecn: Ecn::Capable0,
            arrived_at: Instant::ZERO,
        }
    }

    fn parts(text: usize, flags: TcpFlags) -> Vec<(SeqNumber, TcpFlags, Vec<u8>)> {
        let size = NonZeroU16::new(10).expect("not 0");
        let share = |bytes: Vec<u8>| (bytes.clone(), bytes);
        let text_of =
            |part: &Segment<_>| part.payload.as_ref().map_or(vec![], |text| text.as_slice().into());
        GsoSegment::new(segment(text, flags), size, share)
            .map(|part| (part.seq, part.flags, text_of(&part)))
            .collect()
    }

    #[test]
    fn the_text_is_cut_and_each_flag_stays_with_its_segment() {
        let (ack, all) = (TcpFlags::ACK, TcpFlags::FIN | TcpFlags::PSH | TcpFlags::CWR);
        let expected = [
            (SeqNumber(u32::MAX), ack | TcpFlags::CWR, (3..13).collect()),
            (SeqNumber(9), ack, (13..23).collect()),
            (SeqNumber(19), ack | TcpFlags::FIN | TcpFlags::PSH, (23..28).collect()),
        ];
        assert_eq!(parts(25, ack | all), expected);
    }

    #[test]
    fn what_has_the_size_already_comes_as_it_is() {
        for text in [0, 1, 10] {
            let flags = TcpFlags::ACK | TcpFlags::FIN | TcpFlags::CWR;
            assert_eq!(
                parts(text, flags),
                [(SeqNumber(u32::MAX), flags, (3..3 + text as u8).collect())]
            );
        }
    }
}
