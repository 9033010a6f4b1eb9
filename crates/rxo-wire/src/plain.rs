//! A TCP segment with nothing unusual about it, recognised in a few instructions.
//!
//! Most of what a receiver gets is this: no IP options, no fragment, a right IP checksum, ACK and
//! no other flag, no option or the timestamp in its usual place. [`plain`] tells such a frame and
//! reads what a flow table needs; everything else is [`crate::parse`]'s. It is separate because it
//! repeats, in a form made for speed, a part of what `parse` says; the tests hold it against that.

use crate::ethernet::{self, ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use crate::{FlowKey, IpVersion, SeqNumber, ipv4, ipv6, tcp};

/// What was read of a plain segment. Offsets are in bytes from the frame's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// The flow.
    pub key: FlowKey,
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// Where the IP header begins.
    pub network: u32,
    /// Where the TCP header begins.
    pub transport_at: u32,
    /// Where the payload begins.
    pub payload: u32,
    /// Payload bytes; 0 in a pure ACK.
    pub payload_bytes: u32,
    /// The version of IP.
    pub version: IpVersion,
}

const TCP: u8 = 6;
const ACK: u8 = 0x10;
/// Data offset without options, and with twelve bytes of them.
const OFFSET_BARE: u8 = 0x50;
const OFFSET_TIMESTAMP: u8 = 0x80;
const TIMESTAMP_BYTES: usize = 12;
const ALIGNED_TIMESTAMP: [u8; 4] = [1, 1, 8, 10];

const V4_BYTES: usize = ipv4::MIN_HEADER_BYTES + tcp::MIN_HEADER_BYTES;
const V6_BYTES: usize = ipv6::HEADER_BYTES + tcp::MIN_HEADER_BYTES;

/// Reads an Ethernet frame if it is plain. `None` says nothing about what it is instead.
#[inline(always)]
#[must_use]
pub fn plain(frame: &[u8]) -> Option<Plain> {
    let header: &[u8; ETHERNET_HEADER_BYTES] = frame.first_chunk()?;
    match u16::from_be_bytes([header[12], header[13]]) {
        ETHERTYPE_IPV4 => plain_v4(frame, ETHERNET_HEADER_BYTES, 0),
        ETHERTYPE_IPV6 => plain_v6(frame, ETHERNET_HEADER_BYTES, 0),
        _ => plain_tagged(frame),
    }
}

/// The same for a packet that begins with its IP header.
#[inline(always)]
#[must_use]
pub fn plain_ip(packet: &[u8]) -> Option<Plain> {
    match packet.first()? >> 4 {
        4 => plain_v4(packet, 0, 0),
        6 => plain_v6(packet, 0, 0),
        _ => None,
    }
}

#[inline(never)]
fn plain_tagged(frame: &[u8]) -> Option<Plain> {
    let link = ethernet::read(frame).ok()?;
    match link.ethertype {
        ETHERTYPE_IPV4 => plain_v4(frame, link.network, link.vlans.key()),
        ETHERTYPE_IPV6 => plain_v6(frame, link.network, link.vlans.key()),
        _ => None,
    }
}

#[inline(always)]
fn plain_v4(frame: &[u8], network: usize, vlan: u32) -> Option<Plain> {
    let packet = frame.get(network..)?;
    let headers: &[u8; V4_BYTES] = packet.first_chunk()?;
    let total = usize::from(u16::from_be_bytes([headers[2], headers[3]]));
    // Version 4 with a header of 20 bytes; neither a fragment nor the reserved bit.
    let fragment = u16::from_be_bytes([headers[6], headers[7]]) & 0xbfff;
    if headers[0] != 0x45 || fragment != 0 || headers[9] != TCP || total > packet.len() {
        return None;
    }
    let ip: &[u8; ipv4::MIN_HEADER_BYTES] = headers.first_chunk()?;
    if !ipv4::fixed_ok(ip) {
        return None;
    }
    let key = FlowKey::v4(word(headers, 12), word(headers, 16), word(headers, 20), vlan);
    Segment { packet, network, header: ipv4::MIN_HEADER_BYTES, total, version: IpVersion::V4 }
        .read(headers.last_chunk()?, key)
}

#[inline(always)]
fn plain_v6(frame: &[u8], network: usize, vlan: u32) -> Option<Plain> {
    let packet = frame.get(network..)?;
    let headers: &[u8; V6_BYTES] = packet.first_chunk()?;
    let total = ipv6::HEADER_BYTES + usize::from(u16::from_be_bytes([headers[4], headers[5]]));
    if headers[0] >> 4 != 6 || headers[6] != TCP || total > packet.len() {
        return None;
    }
    let addresses: &[u8; 32] = headers.get(8..)?.first_chunk()?;
    let ports = u32::from_be_bytes([headers[40], headers[41], headers[42], headers[43]]);
    Segment { packet, network, header: ipv6::HEADER_BYTES, total, version: IpVersion::V6 }
        .read(headers.last_chunk()?, FlowKey::v6(addresses, ports, vlan))
}

/// A packet whose IP header is plain.
struct Segment<'a> {
    packet: &'a [u8],
    network: usize,
    header: usize,
    total: usize,
    version: IpVersion,
}

impl Segment<'_> {
    #[inline(always)]
    fn read(self, tcp: &[u8; tcp::MIN_HEADER_BYTES], key: FlowKey) -> Option<Plain> {
        let urgent = u16::from_ne_bytes([tcp[18], tcp[19]]);
        if tcp[13] != ACK || urgent != 0 {
            return None;
        }
        let options_at = self.header + tcp::MIN_HEADER_BYTES;
        let payload_at = match tcp[12] {
            OFFSET_TIMESTAMP => {
                let options: &[u8; 4] = self.packet.get(options_at..)?.first_chunk()?;
                if *options != ALIGNED_TIMESTAMP {
                    return None;
                }
                options_at + TIMESTAMP_BYTES
            }
            OFFSET_BARE => options_at,
            _ => return None,
        };
        Some(Plain {
            key,
            seq: SeqNumber(u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])),
            network: self.network as u32,
            transport_at: (self.network + self.header) as u32,
            payload: (self.network + payload_at) as u32,
            payload_bytes: self.total.checked_sub(payload_at)? as u32,
            version: self.version,
        })
    }
}

#[inline(always)]
fn word(headers: &[u8; V4_BYTES], at: usize) -> u32 {
    u32::from_be_bytes([headers[at], headers[at + 1], headers[at + 2], headers[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_nothing_is_not_plain() {
        assert_eq!(plain(&[]), None);
        assert_eq!(plain_ip(&[]), None);
        assert_eq!(plain(&[0; 60]), None);
    }
}
