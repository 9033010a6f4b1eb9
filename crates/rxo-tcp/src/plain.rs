//! A plain segment: text and no options but timestamps. Aggregates are made of these.
//!
//! Separate from [`Segment`] because it is small, and because a few loads read it, while a header of any
//! shape is walked option by option. All frames of an aggregate have the same shape, so the places of
//! their fields are found once, from the merged header: [`Layout`].

use rxo_frame::{Frame, Instant};
use rxo_wire::tcp::{FixedHeader, MIN_HEADER_BYTES, Timestamp};
use rxo_wire::{SeqNumber, TcpFlags, class_and_length};

use crate::options::SegmentOptions;
use crate::segment::{Ecn, Payload, Segment};

/// A segment with text and no options but timestamps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainSegment<B> {
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// SEG.ACK; means nothing without the ACK flag.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: TcpFlags,
    /// SEG.WND as it stands in the header, unscaled.
    pub window: u16,
    /// TSval and TSecr.
    pub timestamp: Option<Timestamp>,
    /// The text.
    pub payload: Payload<B>,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
    /// When the frame arrived.
    pub arrived_at: Instant,
}

/// Where the headers are in frames of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    network: usize,
    transport: usize,
    has_timestamp: bool,
}

impl Layout {
    /// Reads the layout of frames that begin like `header`, which ends with the TCP header. The IP header
    /// begins at `network`, the TCP header at `transport`. `None` if the header is cut short, or has
    /// options besides timestamps in their usual place: such segments are not plain.
    #[must_use]
    pub fn of_header(header: &[u8], network: usize, transport: usize) -> Option<Self> {
        let options = header.get(transport.checked_add(MIN_HEADER_BYTES)?..)?;
        let has_timestamp = match options {
            [] => false,
            [1, 1, 8, 10, ..] if options.len() == TIMESTAMP_BYTES => true,
            _ => return None,
        };
        let has_ip = network < transport && header.get(network)? >> 4 >= 4;
        has_ip.then_some(Self { network, transport, has_timestamp })
    }

    /// The segments in `frames`, without those that have no text. Takes the buffers; copies nothing.
    pub fn segments<B, I>(self, frames: I) -> PlainSegments<I>
    where
        B: AsRef<[u8]>,
        I: Iterator<Item = Frame<B>>,
    {
        self.run(frames, 1)
    }

    /// The segments in `frames`. The first `alike` of them are alike: they differ in SEQ, IPv4 ID and
    /// checksums only, and the text of each begins where that of the one before ends. Then the first header
    /// says what all of them say.
    pub fn run<B, I>(self, frames: I, alike: usize) -> PlainSegments<I>
    where
        B: AsRef<[u8]>,
        I: Iterator<Item = Frame<B>>,
    {
        PlainSegments { frames, layout: self, like_last: 0, alike }
    }

    fn header_bytes(self) -> usize {
        MIN_HEADER_BYTES + if self.has_timestamp { TIMESTAMP_BYTES } else { 0 }
    }
}

/// The segments in frames of one shape. A type of its own, not an adapter, so that the compiler inlines the
/// reading into the loop that takes them.
#[derive(Clone, Debug)]
pub struct PlainSegments<I> {
    frames: I,
    layout: Layout,
    /// How many of the first frames are alike. 1 once the first of them has been read.
    alike: usize,
    /// How many of the next frames are like the one that was read last.
    like_last: usize,
}

impl<B: AsRef<[u8]>, I: Iterator<Item = Frame<B>>> Iterator for PlainSegments<I> {
    type Item = PlainSegment<B>;

    #[inline(always)]
    fn next(&mut self) -> Option<PlainSegment<B>> {
        loop {
            let frame = self.frames.next()?;
            self.like_last = core::mem::replace(&mut self.alike, 1).saturating_sub(1);
            let segment = PlainSegment::of_frame(frame.bytes, self.layout, frame.arrived_at);
            if segment.is_some() {
                return segment;
            }
        }
    }
}

impl<B: AsRef<[u8]>, I: Iterator<Item = Frame<B>>> PlainSegments<I> {
    /// How many of the next segments are like the one that was read last.
    pub(crate) const fn like_last(&self) -> usize {
        self.like_last
    }

    /// The buffers of the next segments that are like the last one. Their headers are not read.
    #[inline(always)]
    pub(crate) fn buffers_like_last(&mut self) -> impl Iterator<Item = B> {
        let count = core::mem::take(&mut self.like_last);
        self.frames.by_ref().take(count).map(|frame| frame.bytes)
    }
}

impl<B: AsRef<[u8]>> PlainSegment<B> {
    /// The segment in the frame `buffer`, whose headers are where `layout` says. `None` if the frame is too
    /// short for them, or there is no text. Takes the buffer; copies nothing.
    #[inline(always)]
    #[must_use]
    pub fn of_frame(buffer: B, layout: Layout, arrived_at: Instant) -> Option<Self> {
        let bytes = buffer.as_ref();
        let (class, packet_bytes) = class_and_length(bytes.get(layout.network..)?)?;
        let tcp = bytes.get(layout.transport..)?;
        let fixed = FixedHeader::of(tcp)?;
        let timestamp = match layout.has_timestamp {
            true => {
                let header: &[u8; MIN_HEADER_BYTES + TIMESTAMP_BYTES] = tcp.first_chunk()?;
                Some(Timestamp { value: word(header, 24), echo: word(header, 28) })
            }
            false => None,
        };
        let end = layout.network + packet_bytes;
        if end > bytes.len() {
            return None;
        }
        let text = layout.transport + layout.header_bytes()..end;
        Some(Self {
            seq: fixed.seq(),
            ack: fixed.ack(),
            flags: fixed.flags(),
            window: fixed.window(),
            timestamp,
            payload: Payload::known(buffer, text)?,
            ecn: Ecn::from_traffic_class(class),
            arrived_at,
        })
    }
}

#[inline(always)]
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

/// The option with its two no-operations.
const TIMESTAMP_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;
    use rxo_wire::build::{EthernetHeader, Ipv4Header, Ipv6Header, TcpHeader, timestamp_option};
    use rxo_wire::parse;

    use super::*;

    const ETHERNET_BYTES: usize = 14;

    /// A frame with `text` bytes, padded; `number` makes everything else up.
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

    fn layout(frame: &[u8]) -> Option<Layout> {
        let parsed = parse(frame).expect("headers");
        let header = &frame[..parsed.at.payload as usize];
        Layout::of_header(header, ETHERNET_BYTES, parsed.at.transport as usize)
    }

    proptest! {
        /// The oracle is the reader that takes any shape.
        #[test]
        fn a_plain_segment_is_the_segment(
            is_v6: bool, has_timestamp: bool, text in 1_usize..1_500, number: u32,
        ) {
            let stamp = timestamp_option(Timestamp { value: number, echo: !number });
            let frame = frame(is_v6, if has_timestamp { &stamp } else { &[] }, text, number);
            let layout = layout(&frame).expect("a plain segment");
            let parsed = parse(&frame).expect("headers");
            let plain = PlainSegment::of_frame(frame.clone(), layout, Instant::ZERO);
            let whole = Segment::of_frame(frame, &parsed, Instant::ZERO);
            prop_assert_eq!(plain.map(Segment::from), whole);
        }

        /// For any bytes, and any places of headers.
        #[test]
        fn any_bytes_are_a_segment_or_none(
            bytes in prop::collection::vec(any::<u8>(), 0..120), network in 0_usize..100, transport in 0_usize..100,
        ) {
            let long = frame(false, &[], 9, 1);
            for header in [&bytes[..], &long] {
                if let Some(layout) = Layout::of_header(header, network, transport) {
                    let _ = PlainSegment::of_frame(bytes.clone(), layout, Instant::ZERO);
                }
            }
        }
    }

    #[test]
    fn other_options_are_not_plain() {
        assert_eq!(layout(&frame(false, &[1, 1, 1, 1], 9, 1)), None);
        assert!(layout(&frame(false, &[], 9, 1)).is_some());
        let both = [timestamp_option(Timestamp::default()).as_slice(), &[1, 1, 4, 2]].concat();
        assert_eq!(layout(&frame(true, &both, 9, 1)), None);
    }

    #[test]
    fn without_text_there_is_none() {
        let frame = frame(false, &[], 0, 1);
        let layout = layout(&frame).expect("a layout");
        assert_eq!(PlainSegment::of_frame(frame, layout, Instant::ZERO), None);
    }
}
