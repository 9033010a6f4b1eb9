//! The headers of a tunnel around a packet.

use rxo_frame::LinkKind;

use super::Packet;
use crate::naive;

const UDP: u8 = 17;
const VXLAN: u16 = 4789;
const GENEVE: u16 = 6081;

/// The headers of VXLAN or Geneve, and the IP and UDP headers before them. [`Packet::within`] puts them
/// around a packet.
#[derive(Clone, Debug)]
pub struct Outer {
    tags: Vec<(u16, u16)>,
    v6: bool,
    hop_limit: u8,
    traffic_class: u8,
    id: u16,
    bits: u16,
    host: u8,
    source_port: u16,
    port: u16,
    has_checksum: bool,
    checksum_error: u16,
    ip_checksum_error: u16,
    length_lie: i16,
    /// Extra flags and reserved bits of the tunnel's header.
    flags: u8,
    network: u32,
    options: Vec<u8>,
}

/// Makes the headers of VXLAN over IPv4, without a checksum: network 7, DF, ID 0, TTL 64.
#[must_use]
pub fn vxlan() -> Outer {
    Outer {
        tags: Vec::new(),
        v6: false,
        hop_limit: 64,
        traffic_class: 0,
        id: 0,
        bits: 0x4000,
        host: 1,
        source_port: 50_000,
        port: VXLAN,
        has_checksum: false,
        checksum_error: 0,
        ip_checksum_error: 0,
        length_lie: 0,
        flags: 0,
        network: 7,
        options: Vec::new(),
    }
}

/// Makes the headers of Geneve without options, otherwise like [`vxlan`].
#[must_use]
pub fn geneve() -> Outer {
    Outer { port: GENEVE, ..vxlan() }
}

impl Outer {
    /// Makes the outer packet IPv6.
    #[must_use]
    pub fn v6(mut self) -> Self {
        self.v6 = true;
        self
    }

    /// Adds an 802.1Q tag with identifier `id`.
    #[must_use]
    pub fn vlan(mut self, id: u16) -> Self {
        self.tags.push((0x8100, id));
        self
    }

    /// Gives the datagram a checksum.
    #[must_use]
    pub fn checksum(mut self) -> Self {
        self.has_checksum = true;
        self
    }

    /// Gives the datagram a wrong checksum.
    #[must_use]
    pub fn bad_checksum(mut self) -> Self {
        self.checksum_error = 1;
        self.checksum()
    }

    /// Makes the IPv4 header checksum wrong.
    #[must_use]
    pub fn bad_ip_checksum(mut self) -> Self {
        self.ip_checksum_error = 1;
        self
    }

    /// Makes the UDP length wrong by `bytes`.
    #[must_use]
    pub fn length_lie(mut self, bytes: i16) -> Self {
        self.length_lie = bytes;
        self
    }

    /// Sets the identification (v4).
    #[must_use]
    pub fn id(mut self, id: u16) -> Self {
        self.id = id;
        self
    }

    /// Sets or clears DF (v4).
    #[must_use]
    pub fn df(mut self, set: bool) -> Self {
        self.bits = if set { 0x4000 } else { 0 };
        self
    }

    /// Sets the reserved bit beside DF (v4).
    #[must_use]
    pub fn reserved_bit(mut self) -> Self {
        self.bits |= 0x8000;
        self
    }

    /// Makes the outer packet the first fragment of a packet (v4).
    #[must_use]
    pub fn fragment(mut self) -> Self {
        self.bits = 0x2000;
        self
    }

    /// Sets the time to live, or hop limit.
    #[must_use]
    pub fn ttl(mut self, hops: u8) -> Self {
        self.hop_limit = hops;
        self
    }

    /// Sets type of service, or traffic class.
    #[must_use]
    pub fn tos(mut self, byte: u8) -> Self {
        self.traffic_class = byte;
        self
    }

    /// Sets the source port.
    #[must_use]
    pub fn source_port(mut self, port: u16) -> Self {
        self.source_port = port;
        self
    }

    /// Sets the last byte of the sender's address.
    #[must_use]
    pub fn host(mut self, host: u8) -> Self {
        self.host = host;
        self
    }

    /// Sets the network identifier.
    #[must_use]
    pub fn network(mut self, network: u32) -> Self {
        self.network = network & 0x00ff_ffff;
        self
    }

    /// Sets extra flags of the tunnel's header: in the first byte of VXLAN, in the second of Geneve.
    #[must_use]
    pub fn flags(mut self, flags: u8) -> Self {
        self.flags = flags;
        self
    }

    /// Sets the Geneve options, padded to whole words.
    #[must_use]
    pub fn options(mut self, bytes: &[u8]) -> Self {
        self.options = bytes.to_vec();
        self.options.resize(bytes.len().next_multiple_of(4), 0);
        self
    }

    /// Returns the number of bytes before the inner frame.
    pub(super) fn bytes(&self, link: LinkKind) -> usize {
        let link = if link == LinkKind::Ethernet { 14 + 4 * self.tags.len() } else { 0 };
        link + if self.v6 { 40 } else { 20 } + 8 + self.tunnel().len()
    }

    fn tunnel(&self) -> Vec<u8> {
        let mut header = match self.port {
            GENEVE => vec![(self.options.len() / 4) as u8, self.flags, 0x65, 0x58],
            _ => vec![8 | self.flags, 0, 0, 0],
        };
        header.extend_from_slice(&(self.network << 8).to_be_bytes());
        if self.port == GENEVE {
            header.extend_from_slice(&self.options);
        }
        header
    }

    /// Returns the frame with `inner` inside. The checksum is that of `complete`, which is `inner` with a
    /// complete checksum.
    pub(super) fn wrap(&self, inner: &[u8], complete: &[u8], link: LinkKind) -> Vec<u8> {
        let addresses = self.addresses();
        let mut datagram = [&self.udp(inner.len()), &self.tunnel()[..], complete].concat();
        if self.has_checksum {
            let checksum = naive::transport_checksum(&addresses, UDP, &datagram);
            let checksum = if checksum == 0 { 0xffff } else { checksum };
            let checksum = checksum.wrapping_add(self.checksum_error);
            datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
        }
        let at = datagram.len() - inner.len();
        datagram[at..].copy_from_slice(inner);
        [self.link(link), self.ip(&addresses, datagram.len()), datagram].concat()
    }

    fn udp(&self, inner_bytes: usize) -> [u8; 8] {
        let length = (8 + self.tunnel().len() + inner_bytes) as u16;
        let length = length.wrapping_add_signed(self.length_lie);
        let [a, b] = self.source_port.to_be_bytes();
        let ([c, d], [e, f]) = (self.port.to_be_bytes(), length.to_be_bytes());
        [a, b, c, d, e, f, 0, 0]
    }

    fn addresses(&self) -> Vec<u8> {
        if !self.v6 {
            return vec![172, 16, 0, self.host, 172, 16, 0, 200];
        }
        let mut addresses = vec![0; 32];
        (addresses[0], addresses[15], addresses[16], addresses[31]) = (0xfc, self.host, 0xfc, 200);
        addresses
    }

    fn link(&self, link: LinkKind) -> Vec<u8> {
        if link == LinkKind::RawIp {
            return Vec::new();
        }
        let mut header = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 2];
        for (tpid, tci) in &self.tags {
            header.extend_from_slice(&tpid.to_be_bytes());
            header.extend_from_slice(&tci.to_be_bytes());
        }
        header.extend_from_slice(if self.v6 { &[0x86, 0xdd] } else { &[8, 0] });
        header
    }

    fn ip(&self, addresses: &[u8], payload_bytes: usize) -> Vec<u8> {
        if self.v6 {
            let word = 6 << 28 | u32::from(self.traffic_class) << 20;
            let mut header = word.to_be_bytes().to_vec();
            header.extend_from_slice(&(payload_bytes as u16).to_be_bytes());
            header.extend_from_slice(&[UDP, self.hop_limit]);
            header.extend_from_slice(addresses);
            return header;
        }
        let mut header = vec![0x45, self.traffic_class];
        header.extend_from_slice(&(20 + payload_bytes as u16).to_be_bytes());
        header.extend_from_slice(&self.id.to_be_bytes());
        header.extend_from_slice(&self.bits.to_be_bytes());
        header.extend_from_slice(&[self.hop_limit, UDP, 0, 0]);
        header.extend_from_slice(addresses);
        let checksum = naive::internet_checksum(&header).wrapping_add(self.ip_checksum_error);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }
}

impl Packet {
    /// Puts the packet into a tunnel with the headers `outer`. The inner packet gets its own Ethernet header;
    /// padding and truncation apply to the outer frame.
    #[must_use]
    pub fn within(mut self, outer: Outer) -> Self {
        self.outer = Some(outer);
        self
    }
}
