//! Segments of any kind, read at places that are known.

use rxo_frame::Frame;
use rxo_tcp::{Ecn, Payload, Segment, SegmentOptions};
use rxo_wire::tcp::{FixedHeader, MIN_HEADER_BYTES, Timestamp};
use rxo_wire::{Offsets, class_and_length};

use crate::buffer::Buffer;

/// The traffic class of the packet that begins at `network` in the frame `bytes`, and where it ends by its own
/// length.
#[inline]
pub(super) fn class_and_end(bytes: &[u8], network: u32) -> Option<(u8, usize)> {
    let (class, packet_bytes) = class_and_length(bytes.get(network as usize..)?)?;
    Some((class, network as usize + packet_bytes))
}

/// The segments in frames whose headers begin at the same places.
#[derive(Clone, Debug)]
pub(crate) struct Segments<F> {
    frames: F,
    at: Offsets,
}

impl<F> Segments<F> {
    /// The segments in `frames`. Where each ends is read from its own headers, and not in `at`.
    pub(super) const fn new(frames: F, at: Offsets) -> Self {
        Self { frames, at }
    }
}

impl<B: AsRef<[u8]>, F: Iterator<Item = Frame<Buffer<B>>>> Iterator for Segments<F> {
    type Item = Segment<Buffer<B>>;

    #[inline]
    fn next(&mut self) -> Option<Segment<Buffer<B>>> {
        let Self { frames, at } = self;
        frames.find_map(|frame| segment_of(frame, *at))
    }
}

/// The segment in `frame`. `None` if the headers are not where `at` says.
#[inline]
fn segment_of<B: AsRef<[u8]>>(frame: Frame<Buffer<B>>, at: Offsets) -> Option<Segment<Buffer<B>>> {
    let Frame { bytes: buffer, arrived_at, .. } = frame;
    let bytes = buffer.as_ref();
    let (class, end) = class_and_end(bytes, at.network)?;
    let transport = at.transport as usize;
    let tcp = FixedHeader::of(bytes.get(transport..)?)?;
    let payload_at = transport + tcp.header_bytes();
    let options = bytes.get(transport + MIN_HEADER_BYTES..payload_at)?;
    Some(Segment {
        seq: tcp.seq(),
        ack: tcp.ack(),
        flags: tcp.flags(),
        window: tcp.window(),
        options: options_of(options),
        payload: Payload::new(buffer, payload_at..end),
        ecn: Ecn::from_traffic_class(class),
        arrived_at,
    })
}

/// Reads options. Fast for none, and for a timestamp in its usual place.
#[inline]
fn options_of(options: &[u8]) -> SegmentOptions {
    match *options {
        [] => SegmentOptions::default(),
        [1, 1, 8, 10, a, b, c, d, e, f, g, h] => SegmentOptions {
            timestamp: Some(Timestamp {
                value: u32::from_be_bytes([a, b, c, d]),
                echo: u32::from_be_bytes([e, f, g, h]),
            }),
            ..SegmentOptions::default()
        },
        _ => SegmentOptions::read(options),
    }
}
