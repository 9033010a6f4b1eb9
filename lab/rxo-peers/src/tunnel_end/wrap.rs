//! Adds the headers of a tunnel to packets, and checks and removes them.
//!
//! Pure: bytes with their description (`virtio_net_hdr`) go in and come out.

use std::net::IpAddr;

use super::sum::Sum;
use super::{Encapsulation, TunnelOptions};

/// A `virtio_net_hdr` of ten bytes (virtio 1.2, section 5.1.6), in the byte order of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    flags: u8,
    gso_type: u8,
    header_bytes: u16,
    gso_size: u16,
    start: u16,
    offset: u16,
}

impl Said {
    /// Splits `bytes` into the header at their start and the rest.
    pub(super) fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (header, rest) = bytes.split_at_checked(SAID_BYTES)?;
        let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let (flags, gso_type) = (header[0], header[1]);
        let [header_bytes, gso_size, start, offset] = [half(2), half(4), half(6), half(8)];
        Some((Self { flags, gso_type, header_bytes, gso_size, start, offset }, rest))
    }

    pub(super) fn to_bytes(self) -> [u8; SAID_BYTES] {
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        let halves = [self.header_bytes, self.gso_size, self.start, self.offset];
        for (place, half) in bytes[2..].chunks_exact_mut(2).zip(halves) {
            place.copy_from_slice(&half.to_ne_bytes());
        }
        bytes
    }

    /// Returns true if the header describes a GSO frame.
    pub(super) fn is_large(self) -> bool {
        self.gso_type != 0
    }

    /// For a UDP GSO frame, returns the payload bytes of each datagram and the offset of the UDP header.
    pub(super) fn train(self) -> Option<(usize, usize)> {
        let is_train = self.gso_type == GSO_UDP && self.is_partial();
        is_train.then_some((self.gso_size.into(), self.start.into()))
    }

    fn is_partial(self) -> bool {
        self.flags & NEEDS_CHECKSUM != 0
    }

    /// Returns the header for the packet with `bytes` more bytes at its start.
    fn behind(self, bytes: usize) -> Self {
        let header_bytes =
            if self.header_bytes == 0 { 0 } else { self.header_bytes + bytes as u16 };
        let start = if self.is_partial() { self.start + bytes as u16 } else { self.start };
        Self { header_bytes, start, ..self }
    }

    /// Returns the header for the packet without its first `bytes` bytes; `None` if it refers to those bytes.
    fn without(self, bytes: usize) -> Option<Self> {
        let start = if self.is_partial() { self.start.checked_sub(bytes as u16)? } else { 0 };
        let header_bytes = self.header_bytes.saturating_sub(bytes as u16);
        Some(Self { header_bytes, start, ..self })
    }

    /// Returns the sum of the described `bytes`. A partial checksum is completed in the sum: from its start on, the
    /// bytes add up to the complement of the value in its field.
    fn sum(self, bytes: &[u8]) -> Option<Sum> {
        if !self.is_partial() {
            return Some(Sum::default().bytes(bytes));
        }
        let start = usize::from(self.start);
        let field = bytes.get(start + usize::from(self.offset)..)?.first_chunk()?;
        Some(Sum::default().bytes(bytes.get(..start)?).word(!u16::from_be_bytes(*field)))
    }
}

const SAID_BYTES: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
const GSO_UDP: u8 = 5;

/// The fault of a packet of the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The outer IP header has a wrong checksum or length.
    Ip,
    /// The header of the tunnel is wrong.
    Tunnel,
    /// The checksum of UDP or GRE is wrong, missing, or should be missing.
    Checksum,
    /// The packet's description is about its outer headers.
    Said,
}

/// Adds and removes the headers of a tunnel. Reuses one buffer for the headers.
pub(super) struct Wrapper {
    options: TunnelOptions,
    head: Vec<u8>,
    next_id: u16,
}

impl Wrapper {
    pub(super) fn new(options: TunnelOptions) -> Self {
        Self { options, head: Vec::new(), next_id: 1 }
    }

    /// Returns the headers for `packet` and the description of both together. `None` if `packet` is no IP packet, or
    /// too long with its headers.
    pub(super) fn wrap(&mut self, said: Said, packet: &[u8]) -> Option<(Said, &[u8])> {
        let is_v6 = is_v6(packet)?;
        let carrier = self.options.carrier(is_v6);
        let bytes = carrier.len() + packet.len();
        let protocol = self.options.protocol(is_v6);
        self.head.clear();
        if let Some([to, from]) = self.options.macs {
            let ethertype = ethertype(self.options.local.is_ipv6()).to_be_bytes();
            [&to[..], &from, &ethertype].iter().for_each(|bytes| self.head.extend(*bytes));
        }
        let ip = self.options.ip_header(protocol, self.next_id, bytes)?;
        self.next_id = self.next_id.wrapping_add(1);
        self.head.extend(ip);
        let at = self.head.len();
        self.head.extend(carrier);
        let header = &mut self.head[at..];
        if protocol == UDP {
            header[4..6].copy_from_slice(&u16::try_from(bytes).ok()?.to_be_bytes());
        }
        if let Some(field) = self.options.checksum_at() {
            let pseudo = self.options.pseudo(protocol, bytes);
            let sum = pseudo.bytes(header).word(said.sum(packet)?.fold()).fold();
            // In UDP a checksum of 0 means that there is none, so 0 is sent as 0xffff.
            let checksum = if protocol == UDP && sum == u16::MAX { sum } else { !sum };
            header[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        Some((said.behind(self.head.len()), &self.head))
    }

    /// Returns the packet inside `frame` and its description. `None` if `frame` belongs to another tunnel.
    pub(super) fn unwrap<'f>(
        &self,
        said: Said,
        frame: &'f [u8],
    ) -> Result<Option<(Said, &'f [u8])>, Wrong> {
        let link_bytes = if self.options.macs.is_some() { ETHERNET_BYTES } else { 0 };
        let Some((link, packet)) = frame.split_at_checked(link_bytes) else { return Ok(None) };
        if !link.is_empty() && link[12..] != ethertype(self.options.local.is_ipv6()).to_be_bytes() {
            return Ok(None);
        }
        let Some(Body { protocol, ip_bytes, bytes: body }) = self.options.body(packet)? else {
            return Ok(None);
        };
        let (header, inner) =
            body.split_at_checked(self.options.carrier(false).len()).ok_or(Wrong::Tunnel)?;
        let is_v6 = is_v6(inner).ok_or(Wrong::Tunnel)?;
        if protocol != self.options.protocol(is_v6) || !self.options.is_carrier(header, is_v6, body)
        {
            return Err(Wrong::Tunnel);
        }
        let said = said.without(link_bytes + ip_bytes + header.len()).ok_or(Wrong::Said)?;
        if !self.options.is_checksum_right(said, (header, inner), protocol) {
            return Err(Wrong::Checksum);
        }
        Ok(Some((said, inner)))
    }
}

impl TunnelOptions {
    /// Returns the protocol number in the outer IP header.
    const fn protocol(self, is_v6: bool) -> u8 {
        match self.encapsulation {
            Encapsulation::Gre => GRE,
            Encapsulation::Ip if is_v6 => IPV6_IN_IP,
            Encapsulation::Ip => IPV4_IN_IP,
            Encapsulation::Vxlan | Encapsulation::Geneve | Encapsulation::Fou => UDP,
        }
    }

    /// Makes the headers between the outer IP header and an inner one, without lengths and checksums.
    fn carrier(self, is_v6: bool) -> Vec<u8> {
        let ethertype = ethertype(is_v6);
        let udp = |port: u16| [SOURCE_PORT, port, 0, 0].map(u16::to_be_bytes).concat();
        let ethernet =
            [&[2, 0, 0, 0, 0, 1][..], &[2, 0, 0, 0, 0, 2], &ethertype.to_be_bytes()].concat();
        match self.encapsulation {
            Encapsulation::Ip => Vec::new(),
            Encapsulation::Fou => udp(5_555),
            Encapsulation::Vxlan => [udp(4_789), vec![8, 0, 0, 0, 0, 0, 7, 0], ethernet].concat(),
            // Geneve with an option that a receiver may ignore, and one word of data.
            Encapsulation::Geneve => {
                let header = vec![2, 0, 0x65, 0x58, 0, 0, 7, 0, 0, 9, 1, 1, 0, 0, 0, 5];
                [udp(6_081), header, ethernet].concat()
            }
            Encapsulation::Gre => {
                let flags: u16 = if self.has_checksum { 0xa000 } else { 0x2000 };
                let checksum = if self.has_checksum { &[0; 4][..] } else { &[] };
                let key = [0, 0, 0, 7];
                [&flags.to_be_bytes()[..], &ethertype.to_be_bytes(), checksum, &key].concat()
            }
        }
    }

    /// Returns true if `header` is the tunnel's header for `body`, lengths included.
    fn is_carrier(self, header: &[u8], is_v6: bool, body: &[u8]) -> bool {
        let mut expected = self.carrier(is_v6);
        if self.protocol(is_v6) == UDP {
            let bytes = (body.len() as u16).to_be_bytes();
            expected[4..6].copy_from_slice(&bytes);
            expected[6..8].copy_from_slice(&header[6..8]);
        }
        if let Some(field) = self.checksum_at() {
            expected[field..field + 2].copy_from_slice(&header[field..field + 2]);
        }
        expected == header
    }

    /// Returns the offset of the checksum in these headers, if they have one.
    fn checksum_at(self) -> Option<usize> {
        match self.encapsulation {
            _ if !self.has_checksum => None,
            Encapsulation::Ip => None,
            Encapsulation::Gre => Some(4),
            Encapsulation::Vxlan | Encapsulation::Geneve | Encapsulation::Fou => Some(6),
        }
    }

    /// Returns true if a checksum is there exactly if it should be, and is right. A GSO frame gets its checksums only
    /// when it is segmented.
    fn is_checksum_right(self, said: Said, (header, inner): (&[u8], &[u8]), protocol: u8) -> bool {
        if protocol == UDP && (header[6..8] != [0, 0]) != self.has_checksum {
            return false;
        }
        if self.checksum_at().is_none() || said.is_large() {
            return true;
        }
        let pseudo = self.pseudo(protocol, header.len() + inner.len());
        let sum = said.sum(inner).map(|inner| pseudo.bytes(header).word(inner.fold()).fold());
        sum == Some(u16::MAX)
    }

    /// Returns the sum of the pseudo-header, if the checksum covers one.
    fn pseudo(self, protocol: u8, bytes: usize) -> Sum {
        match protocol {
            UDP => Sum::default().pseudo([self.local, self.remote], protocol, bytes),
            _ => Sum::default(),
        }
    }

    /// Makes the outer IP header of a packet with `bytes` after the header.
    fn ip_header(self, protocol: u8, id: u16, bytes: usize) -> Option<Vec<u8>> {
        let addresses = [octets(self.local), octets(self.remote)].concat();
        if self.local.is_ipv6() {
            let [high, low] = u16::try_from(bytes).ok()?.to_be_bytes();
            return Some([&[0x60, 0, 0, 0, high, low, protocol, 64][..], &addresses].concat());
        }
        let [high, low] = u16::try_from(20 + bytes).ok()?.to_be_bytes();
        let [id_high, id_low] = id.to_be_bytes();
        let start = [0x45, 0, high, low, id_high, id_low, 0x40, 0, 64, protocol, 0, 0];
        let mut header = [&start[..], &addresses].concat();
        let checksum = !Sum::default().bytes(&header).fold();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        Some(header)
    }

    /// Returns the bytes after the IP header of a packet from the other end; `None` if the packet is from or
    /// for others.
    fn body(self, packet: &[u8]) -> Result<Option<Body<'_>>, Wrong> {
        let is_outer_v6 = self.local.is_ipv6();
        let ip_bytes = if is_outer_v6 { 40 } else { 20 };
        let Some((ip, rest)) = packet.split_at_checked(ip_bytes) else { return Ok(None) };
        let addresses = if is_outer_v6 { &ip[8..] } else { &ip[12..] };
        if addresses != [octets(self.remote), octets(self.local)].concat() {
            return Ok(None);
        }
        let half = |at: usize| usize::from(u16::from_be_bytes([ip[at], ip[at + 1]]));
        let (protocol, bytes) =
            if is_outer_v6 { (ip[6], Some(half(4))) } else { (ip[9], half(2).checked_sub(20)) };
        let is_right =
            is_outer_v6 || (ip[0] == 0x45 && Sum::default().bytes(ip).fold() == u16::MAX);
        match bytes.and_then(|bytes| rest.get(..bytes)) {
            Some(bytes) if is_right => Ok(Some(Body { protocol, ip_bytes, bytes })),
            _ => Err(Wrong::Ip),
        }
    }
}

/// The bytes after an IP header.
struct Body<'f> {
    protocol: u8,
    /// The length of the IP header.
    ip_bytes: usize,
    bytes: &'f [u8],
}

fn is_v6(packet: &[u8]) -> Option<bool> {
    match packet.first()? >> 4 {
        4 => Some(false),
        6 => Some(true),
        _ => None,
    }
}

const fn ethertype(is_v6: bool) -> u16 {
    if is_v6 { 0x86dd } else { 0x0800 }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

const ETHERNET_BYTES: usize = 14;

/// Protocol numbers (IANA).
const IPV4_IN_IP: u8 = 4;
const UDP: u8 = 17;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;

/// Source port of the tunnel's datagrams: for the outside they are one flow.
const SOURCE_PORT: u16 = 50_000;
