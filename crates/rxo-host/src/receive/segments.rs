//! Segments of any kind, read at places that are known.

use rxo_frame::Frame;
use rxo_tcp::{Ecn, Payload, Segment, SegmentOptions};
use rxo_wire::tcp::{MIN_HEADER_BYTES, Timestamp};
use rxo_wire::{SeqNumber, TcpFlags};

use crate::buffer::Buffer;

/// Where headers begin in every frame of a delivery, in bytes from the first of the frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    network: usize,
    pub(super) transport: usize,
}

impl Layout {
    pub(super) const fn new(network: usize, transport: usize) -> Self {
        Self { network, transport }
    }

    /// The traffic class of the packet in the frame `bytes`, and where it ends by its own length.
    #[inline]
    pub(super) fn class_and_end(self, bytes: &[u8]) -> Option<(u8, usize)> {
        let ip: &[u8; MIN_IP_BYTES] = bytes.get(self.network..)?.first_chunk()?;
        let (class, packet_bytes) = match ip[0] >> 4 {
            4 => (ip[1], usize::from(u16::from_be_bytes([ip[2], ip[3]]))),
            _ => (ip[0] << 4 | ip[1] >> 4, 40 + usize::from(u16::from_be_bytes([ip[4], ip[5]]))),
        };
        Some((class, self.network + packet_bytes))
    }
}

/// The segments in frames of one layout.
#[derive(Clone, Debug)]
pub(crate) struct Segments<F> {
    frames: F,
    layout: Layout,
}

impl<F> Segments<F> {
    /// The segments in `frames`.
    pub(super) const fn new(frames: F, layout: Layout) -> Self {
        Self { frames, layout }
    }
}

impl<B: AsRef<[u8]>, F: Iterator<Item = Frame<Buffer<B>>>> Iterator for Segments<F> {
    type Item = Segment<Buffer<B>>;

    #[inline]
    fn next(&mut self) -> Option<Segment<Buffer<B>>> {
        let Self { frames, layout } = self;
        frames.find_map(|frame| segment_of(frame, *layout))
    }
}

/// The segment in `frame`. `None` if the headers are not where `layout` says.
#[inline]
fn segment_of<B: AsRef<[u8]>>(
    frame: Frame<Buffer<B>>,
    layout: Layout,
) -> Option<Segment<Buffer<B>>> {
    let Frame { bytes: buffer, arrived_at, .. } = frame;
    let bytes = buffer.as_ref();
    let (class, end) = layout.class_and_end(bytes)?;
    let tcp: &[u8; MIN_HEADER_BYTES] = bytes.get(layout.transport..)?.first_chunk()?;
    let payload_at = layout.transport + usize::from(tcp[12] >> 4) * 4;
    let options = bytes.get(layout.transport + MIN_HEADER_BYTES..payload_at)?;
    Some(Segment {
        seq: SeqNumber(u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])),
        ack: SeqNumber(u32::from_be_bytes([tcp[8], tcp[9], tcp[10], tcp[11]])),
        flags: TcpFlags::from_bits(u16::from_be_bytes([tcp[12], tcp[13]])),
        window: u16::from_be_bytes([tcp[14], tcp[15]]),
        options: options_of(options),
        payload: Payload::new(buffer, payload_at..end),
        ecn: Ecn::from_traffic_class(class),
        arrived_at,
    })
}

/// Nearly always none, or the timestamp where it usually stands.
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

const MIN_IP_BYTES: usize = 20;
