//! A frame that is several segments in one, as a local sender or a card with LRO hands it over: each
//! of them counts.

use std::num::NonZeroU16;
use std::sync::Arc;

use rxo_frame::Frame;
use rxo_tcp::{Ecn, Payload, Segment, SegmentOptions};
use rxo_wire::tcp::MIN_HEADER_BYTES;
use rxo_wire::{Parsed, TcpFlags, TcpSegment, Transport};

use crate::buffer::Buffer;

/// The segments in `frame`, of `size` bytes each but the last; they share its buffer. Empty when the
/// frame is no TCP.
pub(crate) fn segments_of_large<B: AsRef<[u8]>>(
    frame: Frame<Buffer<B>>,
    parsed: &Parsed,
    size: NonZeroU16,
) -> impl Iterator<Item = Segment<Buffer<B>>> {
    let arrived_at = frame.arrived_at;
    let (start, end) = (parsed.payload as usize, parsed.end as usize);
    let ecn = Ecn::from_traffic_class(parsed.ip.traffic_class);
    let options_at = parsed.transport_at as usize + MIN_HEADER_BYTES;
    let options = frame.bytes().get(options_at..start).map(SegmentOptions::read);
    let tcp = match parsed.transport {
        Transport::Tcp(tcp) => Some(tcp),
        _ => None,
    };
    let whole = tcp.zip(options).zip(frame.bytes.into_shared());
    whole.into_iter().flat_map(move |((tcp, options), buffer)| {
        (start..end).step_by(size.get().into()).map(move |at| {
            let to = end.min(at + usize::from(size.get()));
            Segment {
                seq: tcp.seq + (at - start) as u32,
                ack: tcp.ack,
                flags: flags_of(&tcp, at == start, to == end),
                window: tcp.window,
                options,
                payload: Payload::new(Buffer::Shared(Arc::clone(&buffer)), at..to),
                ecn,
                arrived_at,
            }
        })
    })
}

/// FIN and PSH belong to the last, CWR to the first.
fn flags_of(tcp: &TcpSegment, is_first: bool, is_last: bool) -> TcpFlags {
    let flags = if is_first { tcp.flags } else { tcp.flags.without(TcpFlags::CWR) };
    if is_last { flags } else { flags.without(TcpFlags::FIN | TcpFlags::PSH) }
}
