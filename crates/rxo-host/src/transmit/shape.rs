//! The parts of packets that are constant for a device or for a connection.
//!
//! These parts change seldom and are used for every packet. A connection's link and IP headers are written
//! once; only the fields that differ between packets are written for each packet.

use std::net::IpAddr;

use rxo_device::SinkCapabilities;
use rxo_frame::{GsoKind, LinkKind};
use rxo_wire::build::{BuildError, EthernetHeader, Ipv4Header, Ipv6Header};
use rxo_wire::checksum::{Sum, Summer, pseudo_header};
use rxo_wire::{
    ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowKey, PROTOCOL_TCP, PROTOCOL_UDP,
};

use super::marks::Marks;

/// The constant properties of a device's packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) link: LinkKind,
    /// The host's own Ethernet address.
    mac: [u8; 6],
    pub(crate) completes_checksums: bool,
    /// `true` if the device declares that it accepts GSO frames.
    pub(super) takes_large: bool,
    pub(crate) ack_templates: bool,
    /// `true` if the device expands ACK templates.
    pub(super) expands_acks: bool,
    pub(crate) summer: Summer,
}

/// The prepared headers of a connection's packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) pair: FlowKey,
    /// The Ethernet and IP headers. Length, ECN bits, IPv4 ID and checksum of the IP header are 0.
    headers: [u8; MOST_BYTES],
    /// The offset of the IP header in `headers`.
    pub(super) network: u8,
    /// The offset after the IP header in `headers`.
    pub(super) transport: u8,
    /// The checksum of the IP header in `headers`.
    ip_sum: Sum,
    /// The checksum of the pseudo-header, without its length field.
    pub(super) pseudo: Sum,
    /// The IP header fields that the application has set.
    marks: Marks,
}

/// The fields of an IP header that differ from packet to packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ip {
    /// Number of bytes after the IP header.
    pub(super) bytes: usize,
    pub(super) ecn: u8,
    pub(super) id: u16,
}

impl Shape {
    pub(crate) fn new(sink: SinkCapabilities, mac: [u8; 6], ack_templates: bool) -> Self {
        let SinkCapabilities { link, completes_checksums, gso_bytes, expands_acks, .. } = sink;
        // The host cannot compute the checksums of segments that the device has yet to create.
        let takes_large = gso_bytes > 0 && completes_checksums;
        let summer = Summer::detect();
        let expands_acks = expands_acks && completes_checksums;
        Self { link, mac, completes_checksums, takes_large, ack_templates, expands_acks, summer }
    }

    /// Returns the routine for TCP checksums; `None` if the device completes them.
    pub(super) fn summer(&self) -> Option<Summer> {
        (!self.completes_checksums).then_some(self.summer)
    }
}

impl Path {
    /// Prepares the headers of a connection that sends as `pair`. The Ethernet destination is still zero.
    pub(crate) fn new(pair: FlowKey, shape: &Shape) -> Self {
        Self::with_protocol(pair, shape, PROTOCOL_TCP)
    }

    /// Prepares the headers of datagrams to a group with the Ethernet address `mac`; `pair` contains their
    /// addresses and ports.
    pub(crate) fn of_datagrams(pair: FlowKey, shape: &Shape, mac: [u8; 6]) -> Self {
        let mut path = Self::with_protocol(pair, shape, PROTOCOL_UDP);
        path.set_destination(mac);
        path
    }

    fn with_protocol(pair: FlowKey, shape: &Shape, protocol: u8) -> Self {
        let network = match shape.link {
            LinkKind::Ethernet => ETHERNET_HEADER_BYTES,
            LinkKind::RawIp => 0,
        };
        let ip_bytes = if is_v4(&pair) { IPV4_BYTES } else { IPV6_BYTES };
        let mut path = Self {
            pair,
            headers: [0; MOST_BYTES],
            network: network as u8,
            transport: (network + ip_bytes) as u8,
            ip_sum: Sum::ZERO,
            pseudo: pseudo_header(&pair, protocol, 0),
            marks: Marks::default(),
        };
        let (link, ip) = path.headers.split_at_mut(network);
        // Cannot fail: there is enough space, and the headers have no payload yet.
        let _fits = write_link(&pair, shape, link).and_then(|()| write_ip(&pair, protocol, ip));
        path.sum_up();
        path
    }

    /// Sets the IP header fields that the application has chosen, for all later packets.
    #[inline]
    pub(crate) fn mark(&mut self, marks: Marks) {
        if self.marks != marks {
            self.marks = marks;
            marks.write(&mut self.headers[self.network.into()..]);
            self.sum_up();
        }
    }

    fn sum_up(&mut self) {
        self.ip_sum = Sum::of(&self.headers[self.network.into()..self.transport.into()]);
    }

    /// Sets the Ethernet destination of all later packets; ignored without Ethernet.
    pub(crate) fn set_destination(&mut self, mac: [u8; 6]) {
        if usize::from(self.network) == ETHERNET_HEADER_BYTES {
            self.headers[..6].copy_from_slice(&mac);
        }
    }

    pub(super) const fn kind(&self) -> GsoKind {
        if self.transport - self.network == IPV4_BYTES as u8 {
            GsoKind::TcpV4
        } else {
            GsoKind::TcpV6
        }
    }

    /// Writes the Ethernet and IP headers at the start of `out`. Returns the part of `out` after these headers.
    pub(super) fn write<'o>(&self, ip: Ip, out: &'o mut [u8]) -> Result<&'o mut [u8], BuildError> {
        let (network, transport) = (usize::from(self.network), usize::from(self.transport));
        let bytes = transport - network + ip.bytes;
        let length = u16::try_from(bytes).map_err(|_| BuildError::PacketTooLong { bytes })?;
        let no_room = BuildError::NoRoom { needed: transport, given: out.len() };
        let (headers, rest) = out.split_at_mut_checked(transport).ok_or(no_room)?;
        headers.copy_from_slice(&self.headers[..transport]);
        if let Some(header) = headers[network..].first_chunk_mut() {
            put_ecn(header, ip.ecn);
            put_length(header, length, ip.id, self.ip_sum + Sum::word(ip.ecn.into()));
        }
        Ok(rest)
    }
}

/// Writes the length of a packet with its IP header and, for IPv4, the ID and the header checksum. `sum` is
/// the checksum of all other fields.
fn put_length(header: &mut IpStart, packet_bytes: u16, id: u16, sum: Sum) {
    if header[0] >> 4 == 4 {
        header[2..4].copy_from_slice(&packet_bytes.to_be_bytes());
    } else {
        let bytes = packet_bytes - IPV6_BYTES as u16;
        header[4..6].copy_from_slice(&bytes.to_be_bytes());
    }
    put_id(header, id, sum + Sum::word(packet_bytes));
}

/// For IPv4, writes the ID of a packet and the header checksum. `sum` is the checksum of all other fields.
#[inline]
fn put_id(header: &mut IpStart, id: u16, sum: Sum) {
    if header[0] >> 4 == 4 {
        header[4..6].copy_from_slice(&id.to_be_bytes());
        let checksum = (sum + Sum::word(id)).checksum();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Sets the ECN bits of an IP header. The bits must have been 0.
fn put_ecn(header: &mut IpStart, ecn: u8) {
    let place = if header[0] >> 4 == 4 { 0 } else { 4 };
    header[1] |= ecn << place;
}

fn write_link(pair: &FlowKey, shape: &Shape, out: &mut [u8]) -> Result<(), BuildError> {
    if shape.link == LinkKind::RawIp {
        return Ok(());
    }
    let ethertype = if is_v4(pair) { ETHERTYPE_IPV4 } else { ETHERTYPE_IPV6 };
    let header = EthernetHeader { source: shape.mac, ethertype, ..EthernetHeader::default() };
    header.write(out).map(|_| ())
}

fn write_ip(pair: &FlowKey, protocol: u8, out: &mut [u8]) -> Result<(), BuildError> {
    match (pair.source(), pair.destination()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            Ipv4Header { source, destination, protocol, ..Ipv4Header::default() }.write(out)?;
            out[2..4].fill(0);
            out[10..12].fill(0);
        }
        (source, destination) => {
            let (source, destination) = (to_v6(source), to_v6(destination));
            Ipv6Header { source, destination, next_header: protocol, ..Ipv6Header::default() }
                .write(out)?;
        }
    }
    Ok(())
}

fn is_v4(pair: &FlowKey) -> bool {
    pair.source().is_ipv4()
}

fn to_v6(address: IpAddr) -> std::net::Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// The start of an IP header, which contains all fields that change from packet to packet.
type IpStart = [u8; IPV4_BYTES];

const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
/// Length in bytes of an Ethernet and an IPv6 header.
const MOST_BYTES: usize = ETHERNET_HEADER_BYTES + IPV6_BYTES;
