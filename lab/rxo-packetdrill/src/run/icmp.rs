//! ICMP messages about a segment of the host (RFC 792, RFC 4443).

use std::net::IpAddr;

use rxo_wire::FlowKey;
use rxo_wire::build::{Ipv4Header, Ipv6Header};
use rxo_wire::checksum::{Summer, pseudo_header};

use super::Wrong;
use crate::script::Icmp;

/// Builds a packet from the peer's address with the message `icmp` about the segment `seq` of
/// `pair`.
pub(super) fn build(pair: &FlowKey, icmp: &Icmp, seq: u32) -> Result<Vec<u8>, Wrong> {
    let is_v4 = pair.source().is_ipv4();
    let Some((kind, code)) = numbers(icmp, is_v4) else {
        let named = icmp.code.as_deref().unwrap_or_default();
        return Err(Wrong::new(KNOWN, format!("{} {named}", icmp.kind)));
    };
    let mut message = vec![kind, code, 0, 0];
    message.extend(icmp.mtu.unwrap_or(0).to_be_bytes());
    message.extend(quoted(pair, seq));
    let built = match (pair.source(), pair.destination()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            put_checksum(&mut message, 0);
            let ip = Ipv4Header {
                source: destination,
                destination: source,
                protocol: 1,
                payload_bytes: message.len(),
                ..Ipv4Header::default()
            };
            let mut bytes = vec![0; ip.bytes() + message.len()];
            ip.write(&mut bytes).map(|rest| rest.copy_from_slice(&message)).map(|()| bytes)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let bytes = message.len() as u32;
            put_checksum(&mut message, pseudo_header(&pair.reversed(), 58, bytes).fold());
            let ip = Ipv6Header {
                source: destination,
                destination: source,
                next_header: 58,
                payload_bytes: message.len(),
                ..Ipv6Header::default()
            };
            let mut bytes = vec![0; ip.bytes() + message.len()];
            ip.write(&mut bytes).map(|rest| rest.copy_from_slice(&message)).map(|()| bytes)
        }
        _ => Ok(Vec::new()),
    };
    built.map_err(|error| Wrong::new("a message that fits a packet", error.to_string()))
}

fn numbers(icmp: &Icmp, is_v4: bool) -> Option<(u8, u8)> {
    Some(match (icmp.kind.as_str(), icmp.code.as_deref(), is_v4) {
        ("unreachable", Some("net_unreachable"), true) => (3, 0),
        ("unreachable", Some("host_unreachable"), true) => (3, 1),
        ("unreachable", Some("proto_unreachable" | "protocol_unreachable"), true) => (3, 2),
        ("unreachable", Some("port_unreachable"), true) => (3, 3),
        ("unreachable", Some("frag_needed"), true) => (3, 4),
        ("unreachable", Some("net_prohibited"), true) => (3, 9),
        ("unreachable", Some("host_prohibited"), true) => (3, 10),
        ("unreachable", Some("packet_filtered"), true) => (3, 13),
        ("source_quench", None, true) => (4, 0),
        ("time_exceeded", Some("ttl_exceeded_in_transit"), true) => (11, 0),
        ("unreachable", Some("no_route"), false) => (1, 0),
        ("unreachable", Some("port_unreachable"), false) => (1, 4),
        ("unreachable", Some("admin_prohibited"), false) => (1, 1),
        ("packet_too_big", None, false) => (2, 0),
        ("time_exceeded", Some("exceeded_hop_limit"), false) => (3, 0),
        ("parameter_problem", Some("unknown_next_header"), false) => (4, 1),
        _ => return None,
    })
}

/// Returns the quoted packet: the host's IP header and the first 8 bytes after it.
fn quoted(pair: &FlowKey, seq: u32) -> Vec<u8> {
    let payload_bytes = 20 + 1000;
    let mut bytes = Vec::new();
    match (pair.source(), pair.destination()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let ip = Ipv4Header {
                source,
                destination,
                protocol: 6,
                payload_bytes,
                ..Ipv4Header::default()
            };
            bytes.resize(ip.bytes(), 0);
            let _ = ip.write(&mut bytes);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = Ipv6Header {
                source,
                destination,
                next_header: 6,
                payload_bytes,
                ..Ipv6Header::default()
            };
            bytes.resize(ip.bytes(), 0);
            let _ = ip.write(&mut bytes);
        }
        _ => {}
    }
    bytes.extend(pair.source_port().to_be_bytes());
    bytes.extend(pair.destination_port().to_be_bytes());
    bytes.extend(seq.to_be_bytes());
    bytes
}

/// Writes the checksum. `seed` is the folded sum of the pseudo-header; 0 if there is none.
fn put_checksum(message: &mut [u8], seed: u16) {
    let sum = Summer::portable().sum(message) + rxo_wire::checksum::Sum::word(seed);
    if let Some(place) = message.get_mut(2..4) {
        place.copy_from_slice(&sum.checksum().to_be_bytes());
    }
}

const KNOWN: &str = "unreachable with net_, host_, proto_, port_unreachable, net_, host_, \
     admin_prohibited, packet_filtered, frag_needed or no_route; source_quench; packet_too_big; \
     time_exceeded with ttl_exceeded_in_transit or exceeded_hop_limit; parameter_problem with \
     unknown_next_header";
