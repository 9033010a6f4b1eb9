//! Predicts the headers of a tunnel, which precede the IP header of a segment inside the tunnel.
//!
//! This module is separate from the headers of the segment, because few segments are in tunnels. In other
//! modules of the note, the tunnel's headers are part of the link header. If the link header differs from the
//! prediction, the whole link header is written.

use rxo_wire::checksum::Sum;
use rxo_wire::{Offsets, PROTOCOL_TCP, PROTOCOL_UDP};

use super::header::{Headers, Position, half};

/// The offsets of the outer IP header and the outer UDP header in a merged packet, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// The offset of the outer IP header, in bytes.
    pub network: u32,
    /// The offset of the outer UDP header, in bytes.
    pub transport: u32,
}

const IPV6_BYTES: usize = 40;

impl Outer {
    /// Changes `link`, which contains all bytes before the IP header of the next segment, to the prediction for
    /// `segment`. In the packet, `link` is followed by the headers at `at` and the segment's payload. `merged`
    /// is the merged packet, and `id_step` is the difference of the outer IPv4 IDs of neighbouring segments.
    /// Fields that do not fit are left unchanged.
    pub(super) fn predict(
        self,
        link: &mut Headers,
        segment: Position,
        (merged, at): (&[u8], Offsets),
        id_step: u16,
    ) {
        let (network, transport) = (self.network as usize, self.transport as usize);
        let header_bytes = (at.payload - at.network) as usize;
        let end = link.0.len() + header_bytes + segment.payload_bytes;
        let (Some(packet_bytes), Some(datagram_bytes)) =
            (end.checked_sub(network), end.checked_sub(transport))
        else {
            return;
        };
        let is_v4 = link.0.get(network).is_some_and(|first| first >> 4 == 4);
        if is_v4 {
            let first_id = half(merged, network + 4);
            let id = first_id.wrapping_add(id_step.wrapping_mul(segment.number as u16));
            link.put(network + 2, (packet_bytes as u16).to_be_bytes());
            link.put(network + 4, id.to_be_bytes());
            link.put(network + 10, [0; 2]);
            let header = link.0.get(network..transport).unwrap_or_default();
            let checksum = Sum::of(header).checksum();
            link.put(network + 10, checksum.to_be_bytes());
        } else {
            let length = packet_bytes.saturating_sub(IPV6_BYTES);
            link.put(network + 4, (length as u16).to_be_bytes());
        }
        link.put(transport + 4, (datagram_bytes as u16).to_be_bytes());
        if link.pair(transport + 6) == [0; 2] {
            return;
        }
        link.put(transport + 6, [0; 2]);
        let sum = pseudo_header(&link.0, network, PROTOCOL_UDP, datagram_bytes)
            + link.0.get(transport..).map_or(Sum::ZERO, Sum::of)
            + inside(merged, at, segment.payload_bytes);
        let checksum = match sum.checksum() {
            0 => u16::MAX,
            checksum => checksum,
        };
        link.put(transport + 6, checksum.to_be_bytes());
    }
}

/// Returns the sum of the pseudo-header of a segment or datagram of `bytes` bytes, whose IP header begins at
/// `network`.
fn pseudo_header(packet: &[u8], network: usize, protocol: u8, bytes: usize) -> Sum {
    let is_v4 = packet.get(network).is_some_and(|first| first >> 4 == 4);
    let addresses = if is_v4 { network + 12..network + 20 } else { network + 8..network + 40 };
    let addresses = packet.get(addresses).map_or(Sum::ZERO, Sum::of);
    addresses + Sum::word(protocol.into()) + Sum::long(bytes as u32)
}

/// Returns the sum of an inner packet with `payload_bytes` bytes of payload and correct checksums. With correct
/// checksums, the sum of the segment and its pseudo-header is zero, and the sum of an IPv4 header is zero, too.
fn inside(merged: &[u8], at: Offsets, payload_bytes: usize) -> Sum {
    let (network, transport) = (at.network as usize, at.transport as usize);
    let segment_bytes = (at.payload - at.transport) as usize + payload_bytes;
    let segment = Sum::ZERO - pseudo_header(merged, network, PROTOCOL_TCP, segment_bytes);
    let Some(header) = merged.get(network..transport).filter(|header| header[0] >> 4 == 6) else {
        return segment;
    };
    let length = header.len() - IPV6_BYTES + segment_bytes;
    let all_but_length = Sum::of(header) - Sum::of(header.get(4..6).unwrap_or_default());
    segment + all_but_length + Sum::word(length as u16)
}
