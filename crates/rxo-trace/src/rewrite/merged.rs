//! Writes an aggregate as one contiguous packet with a complete checksum.
//!
//! The checksum is computed over the payload instead of combined from those of the segments. Under
//! `--checksum trust` these may be wrong, and a capture must not show a wrong checksum that was not
//! there.

use rxo_coalesce::{Aggregate, Kind};
use rxo_wire::build::{write_tcp_checksum, write_udp_checksum};
use rxo_wire::checksum::{Summer, pseudo_header};
use rxo_wire::{Offsets, PROTOCOL_TCP, PROTOCOL_UDP};

/// Replaces the contents of `packet` by `link` and the bytes of `aggregate`, and returns the
/// offsets of the headers. `link` is the link header that the engine did not see; empty if it saw
/// everything.
pub(crate) fn write<B: AsRef<[u8]>>(
    aggregate: &Aggregate<'_, B>,
    link: &[u8],
    summer: Summer,
    packet: &mut Vec<u8>,
) -> Offsets {
    packet.clear();
    packet.reserve(link.len() + aggregate.header().len() + aggregate.payload_bytes() as usize);
    packet.extend_from_slice(link);
    packet.extend_from_slice(aggregate.header());
    let payload = packet.len();
    aggregate.payloads().for_each(|payload| packet.extend_from_slice(payload));
    let at = Offsets {
        network: (link.len() + aggregate.network_at()) as u32,
        transport: (link.len() + aggregate.transport_at()) as u32,
        payload: payload as u32,
        end: packet.len() as u32,
    };
    let is_udp = aggregate.kind() == Kind::Datagrams;
    let protocol = if is_udp { PROTOCOL_UDP } else { PROTOCOL_TCP };
    let pseudo = pseudo_header(&aggregate.flow_key(), protocol, at.segment_bytes());
    let segment = packet.get_mut(at.segment()).unwrap_or_default();
    // A segment that is cut short has no checksum.
    let _is_whole = match is_udp {
        true => write_udp_checksum(segment, pseudo, summer),
        false => write_tcp_checksum(segment, pseudo, summer),
    };
    at
}
