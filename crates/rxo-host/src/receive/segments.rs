//! A segment of an aggregate, read at places that are known.

use rxo_coalesce::Aggregate;
use rxo_frame::Frame;
use rxo_tcp::{Ecn, Payload, Segment, SegmentOptions};
use rxo_wire::tcp::{MIN_HEADER_BYTES, Timestamp};
use rxo_wire::{SeqNumber, TcpFlags};

use crate::buffer::Buffer;

/// Where headers begin in every frame of an aggregate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    network: usize,
    transport: usize,
}

impl Layout {
    pub(crate) fn of<B: AsRef<[u8]>>(aggregate: &Aggregate<'_, B>) -> Self {
        Self { network: aggregate.network_at(), transport: aggregate.transport_at() }
    }
}

/// The segment in `frame`. `None` when the frame is not what the engine saw.
#[inline]
pub(crate) fn segment_of<B: AsRef<[u8]>>(
    frame: Frame<Buffer<B>>,
    layout: Layout,
) -> Option<Segment<Buffer<B>>> {
    let Frame { bytes: buffer, arrived_at, .. } = frame;
    let bytes = buffer.as_ref();
    let ip: &[u8; MIN_IP_BYTES] = bytes.get(layout.network..)?.first_chunk()?;
    let tcp: &[u8; MIN_HEADER_BYTES] = bytes.get(layout.transport..)?.first_chunk()?;
    let (class, packet_bytes) = match ip[0] >> 4 {
        4 => (ip[1], usize::from(u16::from_be_bytes([ip[2], ip[3]]))),
        _ => (ip[0] << 4 | ip[1] >> 4, 40 + usize::from(u16::from_be_bytes([ip[4], ip[5]]))),
    };
    let payload_at = layout.transport + usize::from(tcp[12] >> 4) * 4;
    let options = bytes.get(layout.transport + MIN_HEADER_BYTES..payload_at)?;
    Some(Segment {
        seq: SeqNumber(u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])),
        ack: SeqNumber(u32::from_be_bytes([tcp[8], tcp[9], tcp[10], tcp[11]])),
        flags: TcpFlags::from_bits(u16::from_be_bytes([tcp[12], tcp[13]])),
        window: u16::from_be_bytes([tcp[14], tcp[15]]),
        options: options_of(options),
        payload: Payload::new(buffer, payload_at..layout.network + packet_bytes),
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
