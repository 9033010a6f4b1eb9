//! Writes an aggregate as one contiguous packet with a complete checksum.
//!
//! The checksum is computed over the payload instead of combined from those of the segments. Under
//! `--checksum trust` these may be wrong, and a capture must not show a wrong checksum that was not
//! there.

use rxo_coalesce::Aggregate;
use rxo_wire::PROTOCOL_TCP;
use rxo_wire::checksum::{Summer, pseudo_header};
use rxo_wire::tcp::CHECKSUM_AT;

use super::note::Layout;

/// Replaces the contents of `packet` by `link` and the bytes of `aggregate`, and returns the
/// offsets of the headers. `link` is the link header that the engine did not see; empty if it saw
/// everything.
pub(crate) fn write<B: AsRef<[u8]>>(
    aggregate: &Aggregate<'_, B>,
    link: &[u8],
    summer: Summer,
    packet: &mut Vec<u8>,
) -> Layout {
    packet.clear();
    packet.reserve(link.len() + aggregate.header().len() + aggregate.payload_bytes() as usize);
    packet.extend_from_slice(link);
    packet.extend_from_slice(aggregate.header());
    let layout = Layout {
        network: link.len() + aggregate.network_at(),
        transport: link.len() + aggregate.transport_at(),
        payload: packet.len(),
    };
    aggregate.payloads().for_each(|payload| packet.extend_from_slice(payload));
    put_checksum(packet, layout.transport, [0; 2]);
    let segment = packet.get(layout.transport..).unwrap_or_default();
    let pseudo = pseudo_header(&aggregate.flow_key(), PROTOCOL_TCP, segment.len() as u32);
    let checksum = (pseudo + summer.sum(segment)).checksum();
    put_checksum(packet, layout.transport, checksum.to_be_bytes());
    layout
}

fn put_checksum(packet: &mut [u8], transport: usize, checksum: [u8; 2]) {
    let field = packet.get_mut(transport + CHECKSUM_AT..).and_then(|rest| rest.first_chunk_mut());
    if let Some(field) = field {
        *field = checksum;
    }
}
