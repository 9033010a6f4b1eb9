//! Writes an aggregate as one contiguous packet with a complete checksum.
//!
//! The checksum is computed over the payload, and not combined from the checksums of the segments. Under
//! `--checksum trust`, the checksums of the segments may be wrong, and a capture must not show a wrong checksum
//! that was not in the original.

use super::note::Outer;
use rxo_coalesce::{Aggregate, Kind};
use rxo_frame::{GsoTunnel, UdpTunnel};
use rxo_wire::build::{write_tcp_checksum, write_udp_checksum};
use rxo_wire::checksum::{Sum, Summer, pseudo_header};
use rxo_wire::{Offsets, PROTOCOL_TCP, PROTOCOL_UDP};

/// Replaces the contents of `packet` by `link` and the bytes of `aggregate`. Returns the offsets of the headers
/// and, if there is a tunnel, of the tunnel headers before them. `link` is the link header that was not passed
/// to the engine; empty if the whole frame was passed to it.
pub(crate) fn write<B: AsRef<[u8]>>(
    aggregate: &Aggregate<'_, B>,
    link: &[u8],
    summer: Summer,
    packet: &mut Vec<u8>,
) -> (Offsets, Option<Outer>) {
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
    // A truncated segment is too short for its checksum field, and stays without.
    let _is_whole = match is_udp {
        true => write_udp_checksum(segment, pseudo, summer),
        false => write_tcp_checksum(segment, pseudo, summer),
    };
    let tunnel = aggregate.tunnel().and_then(GsoTunnel::as_udp);
    let outer = tunnel.map(|tunnel| {
        write_outer_checksum(packet, link.len(), tunnel, summer);
        let transport = link.len() as u32 + u32::from(tunnel.outer_transport);
        let ip_bytes = if tunnel.is_outer_v6 { 40 } else { 20 };
        Outer { network: transport.saturating_sub(ip_bytes), transport }
    });
    (at, outer)
}

/// Completes the checksum of the outer UDP header, if that header has a checksum.
fn write_outer_checksum(packet: &mut [u8], link_bytes: usize, tunnel: UdpTunnel, summer: Summer) {
    let transport = link_bytes + usize::from(tunnel.outer_transport);
    let Some((headers, datagram)) =
        packet.split_at_mut_checked(transport).filter(|_| tunnel.has_checksum)
    else {
        return;
    };
    let address_bytes = if tunnel.is_outer_v6 { 32 } else { 8 };
    let addresses = headers.get(headers.len().saturating_sub(address_bytes)..);
    let pseudo = addresses.map_or(Sum::ZERO, Sum::of)
        + Sum::word(PROTOCOL_UDP.into())
        + Sum::long(datagram.len() as u32);
    let _is_whole = write_udp_checksum(datagram, pseudo, summer);
}

/// Returns `true` if the checksums of a merged packet are correct, both outside and inside a tunnel. The outer
/// datagram of a tunnel may have no checksum.
#[cfg(test)]
pub(crate) fn has_right_checksums(packet: &[u8], parsed: &rxo_wire::Parsed) -> bool {
    use rxo_wire::checksum::verify_transport;
    use rxo_wire::{Transport, tunnel::Tunnel};

    let is_right =
        |of: &rxo_wire::Parsed| of.ip.checksum_ok && verify_transport(of, packet, Summer::detect());
    let tunnel = Tunnel::of_port(parsed.key.destination_port());
    match (tunnel.and_then(|tunnel| tunnel.inside(packet, parsed)), parsed.transport) {
        (Some(inside), Transport::Udp(udp)) => {
            is_right(&inside.parsed) && (udp.checksum == 0 || is_right(parsed))
        }
        _ => is_right(parsed),
    }
}
