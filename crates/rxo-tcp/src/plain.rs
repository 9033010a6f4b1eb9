//! A plain segment: data and no options except timestamps. Aggregates consist of plain segments.
//!
//! Separate from [`Segment`] because a plain segment is small and read with a few loads, while other headers
//! are parsed option by option. All frames of an aggregate have the same header layout, so the engine's
//! [`Offsets`] locate the fields of each.

use rxo_frame::{Frame, Instant};
use rxo_wire::tcp::{FixedHeader, MIN_HEADER_BYTES, Timestamp};
use rxo_wire::{Offsets, SeqNumber, TcpFlags, class_and_length};

use crate::options::SegmentOptions;
use crate::segment::{Ecn, Payload, Segment};

/// A segment with data and no options except timestamps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainSegment<B> {
    /// SEG.SEQ: the sequence number.
    pub seq: SeqNumber,
    /// SEG.ACK: the ACK number; meaningless without the ACK flag.
    pub ack: SeqNumber,
    /// The control bits of the TCP header.
    pub flags: TcpFlags,
    /// SEG.WND: the window as in the header, unscaled.
    pub window: u16,
    /// TSval and TSecr; `None` without the timestamp option.
    pub timestamp: Option<Timestamp>,
    /// The data of the segment.
    pub payload: Payload<B>,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// The arrival time of the frame.
    pub arrived_at: Instant,
}

/// Returns `true` if segments with the header `header`, laid out as in `at`, are plain: there are no options,
/// or only timestamps in their usual position. The length of the data does not matter.
#[must_use]
pub fn has_plain_options(header: &[u8], at: Offsets) -> bool {
    match header.get(at.tcp_options()) {
        Some([]) => true,
        Some([1, 1, 8, 10, rest @ ..]) => rest.len() == 8,
        _ => false,
    }
}

/// An iterator over the segments in frames with one header layout. This is a type of its own, not an iterator
/// adapter, so that the compiler inlines the parsing into the caller's loop.
#[derive(Clone, Debug)]
pub struct PlainSegments<I> {
    frames: I,
    at: Offsets,
    /// The number of frames, starting with the next one, that are known to be alike (see
    /// [`PlainSegments::new`]); at least 1.
    alike: usize,
    /// The number of following frames that are like the last segment yielded (see [`PlainSegments::new`]).
    like_last: usize,
}

impl<I> PlainSegments<I> {
    /// Creates an iterator over the segments in `frames`; segments without payload are skipped. The headers of
    /// all frames are laid out as in `at`, and [`has_plain_options`] must be true for them. The end of each
    /// segment is read from its own header. The first `alike` frames, at least 1, must be alike: they differ
    /// only in SEQ, IPv4 ID and checksums, and their payloads are contiguous. Of these frames only the first
    /// header is read. Takes the buffers and copies nothing.
    pub const fn new(frames: I, at: Offsets, alike: usize) -> Self {
        Self { frames, at, like_last: 0, alike }
    }
}

impl<B: AsRef<[u8]>, I: Iterator<Item = Frame<B>>> Iterator for PlainSegments<I> {
    type Item = PlainSegment<B>;

    #[inline(always)]
    fn next(&mut self) -> Option<PlainSegment<B>> {
        loop {
            let frame = self.frames.next()?;
            self.like_last = self.alike.saturating_sub(1);
            self.alike = self.like_last.max(1);
            let segment = PlainSegment::of_frame(frame.bytes, self.at, frame.arrived_at);
            if segment.is_some() {
                return segment;
            }
        }
    }
}

impl<I> PlainSegments<I> {
    /// Returns the number of following segments that are like the last one yielded (see
    /// [`PlainSegments::new`]).
    pub(crate) const fn like_last(&self) -> usize {
        self.like_last
    }

    /// Returns the frame iterator and the number of next frames that are like the last one. The caller must
    /// consume these frames; their headers are not read.
    #[inline]
    pub(crate) const fn frames_like_last(&mut self) -> (&mut I, usize) {
        self.alike = 1;
        (&mut self.frames, core::mem::replace(&mut self.like_last, 0))
    }
}

impl<B: AsRef<[u8]>> PlainSegment<B> {
    /// Returns the segment in the frame `buffer`, whose headers must be laid out as in `at`, with plain
    /// options. `None` if the frame is too short or there is no data. The end of the data is read from the IP
    /// header. Takes the buffer and copies nothing.
    #[inline(always)]
    #[must_use]
    pub fn of_frame(buffer: B, at: Offsets, arrived_at: Instant) -> Option<Self> {
        let (network, transport) = (at.network as usize, at.transport as usize);
        let bytes = buffer.as_ref();
        let (class, packet_bytes) = class_and_length(bytes.get(network..)?)?;
        let tcp = bytes.get(transport..)?;
        let fixed = FixedHeader::of(tcp)?;
        let timestamp = match at.transport_header().len() > MIN_HEADER_BYTES {
            true => {
                let header: &[u8; MIN_HEADER_BYTES + TIMESTAMP_BYTES] = tcp.first_chunk()?;
                Some(Timestamp { value: word(header, 24), echo: word(header, 28) })
            }
            false => None,
        };
        let end = network + packet_bytes;
        if end > bytes.len() {
            return None;
        }
        Some(Self {
            seq: fixed.seq(),
            ack: fixed.ack(),
            flags: fixed.flags(),
            window: fixed.window(),
            timestamp,
            payload: Payload::known(buffer, at.payload as usize..end)?,
            ecn: Ecn::from_traffic_class(class),
            arrived_at,
        })
    }
}

#[inline]
fn word<const BYTES: usize>(header: &[u8; BYTES], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

impl<B> From<PlainSegment<B>> for Segment<B> {
    fn from(plain: PlainSegment<B>) -> Self {
        let PlainSegment { seq, ack, flags, window, timestamp, payload, ecn, arrived_at } = plain;
        let options = SegmentOptions { timestamp, ..SegmentOptions::default() };
        Self { seq, ack, flags, window, options, payload: Some(payload), ecn, arrived_at }
    }
}

/// The length of the timestamp option with its two no-operations, in bytes.
const TIMESTAMP_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;
    use rxo_wire::build::{EthernetHeader, Ipv4Header, Ipv6Header, TcpHeader, timestamp_option};
    use rxo_wire::{Parsed, Transport, parse};

    use super::*;

    /// Returns a frame with `text` bytes of text and padding; `number` generates all other fields.
    fn frame(is_v6: bool, options: &[u8], text: usize, number: u32) -> Vec<u8> {
        let tcp = TcpHeader {
            seq: SeqNumber(number),
            ack: SeqNumber(number.rotate_left(7)),
            flags: TcpFlags::from_bits(number as u16 & 0x1ff),
            window: number.rotate_left(13) as u16,
            options,
            ..TcpHeader::default()
        };
        let (class, payload_bytes) = (number as u8, tcp.bytes() + text);
        let v4 = Ipv4Header {
            protocol: 6,
            traffic_class: class,
            payload_bytes,
            ..Ipv4Header::default()
        };
        let v6 = Ipv6Header {
            next_header: 6,
            traffic_class: class,
            payload_bytes,
            ..Ipv6Header::default()
        };
        let mut bytes = alloc::vec![0xaa; 100 + payload_bytes];
        let ethertype = if is_v6 { 0x86dd } else { 0x0800 };
        let link = EthernetHeader { ethertype, ..EthernetHeader::default() };
        let rest = link.write(&mut bytes).expect("room");
        let rest = if is_v6 { v6.write(rest) } else { v4.write(rest) };
        tcp.write(rest.expect("room")).expect("room");
        bytes
    }

    /// Returns the header layout of `frame` if its options are plain.
    fn plain(frame: &[u8]) -> Option<Offsets> {
        let at = parse(frame).expect("headers").at;
        has_plain_options(frame, at).then_some(at)
    }

    fn any_place() -> impl Strategy<Value = u32> {
        prop_oneof![9 => 0_u32..100, 1 => any::<u32>()]
    }

    /// Returns the segment in `buffer`, with the fields that the parser found.
    fn of_parsed(buffer: Vec<u8>, parsed: &Parsed) -> Option<Segment<Vec<u8>>> {
        let Transport::Tcp(tcp) = parsed.transport else { return None };
        Some(Segment {
            seq: tcp.seq,
            ack: tcp.ack,
            flags: tcp.flags,
            window: tcp.window,
            options: SegmentOptions::read(&buffer[parsed.at.tcp_options()]),
            payload: Payload::new(buffer, parsed.at.payload_range()),
            ecn: Ecn::from_traffic_class(parsed.ip.traffic_class),
            arrived_at: Instant::ZERO,
        })
    }

    proptest! {
        /// The oracle is the parser for any header layout.
        #[test]
        fn a_plain_segment_is_the_segment(
            is_v6: bool, has_timestamp: bool, text in 1_usize..1_500, number: u32,
        ) {
            let stamp = timestamp_option(Timestamp { value: number, echo: !number });
            let frame = frame(is_v6, if has_timestamp { &stamp } else { &[] }, text, number);
            let at = plain(&frame).expect("a plain segment");
            let parsed = parse(&frame).expect("headers");
            let plain = PlainSegment::of_frame(frame.clone(), at, Instant::ZERO);
            let told = Segment::read(frame.clone(), at, Instant::ZERO);
            let whole = of_parsed(frame, &parsed);
            prop_assert_eq!(plain.map(Segment::from), whole.clone());
            prop_assert_eq!(told, whole);
        }

        /// No bytes and no header offsets cause a panic.
        #[test]
        fn any_bytes_are_a_segment_or_none(
            bytes in prop::collection::vec(any::<u8>(), 0..120), at in [any_place(), any_place(), any_place()],
        ) {
            let [network, transport, payload] = at;
            let at = Offsets { network, transport, payload, end: 0 };
            let _ = has_plain_options(&bytes, at);
            let _ = Segment::read(bytes.clone(), at, Instant::ZERO);
            let _ = PlainSegment::of_frame(bytes, at, Instant::ZERO);
        }
    }

    #[test]
    fn other_options_are_not_plain() {
        assert_eq!(plain(&frame(false, &[1, 1, 1, 1], 9, 1)), None);
        assert!(plain(&frame(false, &[], 9, 1)).is_some());
        let both = [timestamp_option(Timestamp::default()).as_slice(), &[1, 1, 4, 2]].concat();
        assert_eq!(plain(&frame(true, &both, 9, 1)), None);
    }

    #[test]
    fn without_text_there_is_none() {
        let frame = frame(false, &[], 0, 1);
        let at = plain(&frame).expect("plain options");
        assert_eq!(PlainSegment::of_frame(frame, at, Instant::ZERO), None);
    }
}
