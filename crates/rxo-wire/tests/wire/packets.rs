//! Valid packets of every form that the parser supports, written with the crate's own builder.

use proptest::prelude::*;
use rxo_wire::build::{
    EthernetHeader, Ipv4Header, Ipv6Extension, Ipv6Header, TcpHeader, UdpHeader, VlanTag,
    write_tcp_checksum, write_udp_checksum,
};
use rxo_wire::checksum::{Sum, Summer};
use rxo_wire::{SeqNumber, TcpFlags};

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const SOURCE_V4: [u8; 4] = [192, 0, 2, 1];
pub(crate) const DESTINATION_V4: [u8; 4] = [198, 51, 100, 2];
pub(crate) const SOURCE_V6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
pub(crate) const DESTINATION_V6: [u8; 16] =
    [0x20, 1, 0xd, 0xb8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// The description of a packet. The default is a plain TCP segment over IPv4.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) tags: Vec<(u16, u16)>,
    pub(crate) is_v6: bool,
    pub(crate) is_udp: bool,
    pub(crate) ports: (u16, u16),
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    pub(crate) id: u16,
    pub(crate) fragment: u16,
    pub(crate) ip_options: Vec<u8>,
    /// Type and contents of each IPv6 extension header.
    pub(crate) extensions: Vec<(u8, Vec<u8>)>,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u16,
    pub(crate) window: u16,
    pub(crate) tcp_options: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) padding: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            tags: vec![],
            is_v6: false,
            is_udp: false,
            ports: (40_000, 443),
            traffic_class: 0,
            hop_limit: 64,
            id: 7,
            fragment: Ipv4Header::DONT_FRAGMENT,
            ip_options: vec![],
            extensions: vec![],
            seq: 1000,
            ack: 2000,
            flags: TcpFlags::ACK.bits(),
            window: 501,
            tcp_options: vec![],
            payload: b"payload".to_vec(),
            padding: 0,
        }
    }
}

impl Shape {
    /// Builds the packet starting at its IP header, without padding.
    pub(crate) fn packet(&self) -> Vec<u8> {
        let mut packet = vec![0; self.ip_header_bytes() + self.segment_bytes()];
        let (_, segment) = packet.split_at_mut(self.ip_header_bytes());
        self.write_segment(segment);
        self.write_ip(&mut packet);
        packet
    }

    /// Builds the whole Ethernet frame, including padding.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let tags: Vec<_> =
            self.tags.iter().map(|(tpid, tci)| VlanTag { tpid: *tpid, tci: *tci }).collect();
        let ethertype = if self.is_v6 { 0x86dd } else { 0x0800 };
        let link = EthernetHeader { tags: &tags, ethertype, ..EthernetHeader::default() };
        let mut frame = vec![0; link.bytes()];
        link.write(&mut frame).unwrap();
        frame.extend(self.packet());
        frame.resize(frame.len() + self.padding, 0xa5);
        frame
    }

    pub(crate) fn protocol(&self) -> u8 {
        if self.is_udp { UDP } else { TCP }
    }

    pub(crate) fn ip_header_bytes(&self) -> usize {
        if self.is_v6 {
            40 + self.extensions().map(|extension| extension.bytes()).sum::<usize>()
        } else {
            20 + self.ip_options.len().next_multiple_of(4)
        }
    }

    fn segment_bytes(&self) -> usize {
        let header = if self.is_udp { 8 } else { 20 + self.tcp_options.len().next_multiple_of(4) };
        header + self.payload.len()
    }

    /// Returns the extension headers, each with the type of the header after it.
    fn extensions(&self) -> impl Iterator<Item = Ipv6Extension<'_>> {
        self.extensions.iter().enumerate().map(|(index, (_, data))| Ipv6Extension {
            next_header: self.extensions.get(index + 1).map_or(self.protocol(), |next| next.0),
            data,
        })
    }

    fn write_ip(&self, packet: &mut [u8]) {
        let payload_bytes = packet.len() - self.ip_header_bytes();
        if self.is_v6 {
            let header = Ipv6Header {
                source: SOURCE_V6.into(),
                destination: DESTINATION_V6.into(),
                next_header: self.extensions.first().map_or(self.protocol(), |first| first.0),
                traffic_class: self.traffic_class,
                hop_limit: self.hop_limit,
                payload_bytes: packet.len() - 40,
                flow_label: u32::from(self.id),
            };
            let rest = header.write(packet).unwrap();
            self.extensions().fold(rest, |rest, extension| extension.write(rest).unwrap());
            return;
        }
        let header = Ipv4Header {
            source: SOURCE_V4.into(),
            destination: DESTINATION_V4.into(),
            protocol: self.protocol(),
            traffic_class: self.traffic_class,
            hop_limit: self.hop_limit,
            id: self.id,
            fragment: self.fragment,
            options: &self.ip_options,
            payload_bytes,
        };
        header.write(packet).unwrap();
    }

    fn pseudo_header(&self, segment_bytes: usize) -> Sum {
        let addresses = if self.is_v6 {
            Sum::of(&SOURCE_V6) + Sum::of(&DESTINATION_V6)
        } else {
            Sum::of(&SOURCE_V4) + Sum::of(&DESTINATION_V4)
        };
        addresses + Sum::word(u16::from(self.protocol())) + Sum::long(segment_bytes as u32)
    }

    fn write_segment(&self, segment: &mut [u8]) {
        let pseudo_header = self.pseudo_header(segment.len());
        let (source_port, destination_port) = self.ports;
        if self.is_udp {
            let header =
                UdpHeader { source_port, destination_port, payload_bytes: self.payload.len() };
            header.write(segment).unwrap().copy_from_slice(&self.payload);
            write_udp_checksum(segment, pseudo_header, Summer::portable()).unwrap();
            return;
        }
        let header = TcpHeader {
            source_port,
            destination_port,
            seq: SeqNumber(self.seq),
            ack: SeqNumber(self.ack),
            flags: TcpFlags::from_bits(self.flags),
            window: self.window,
            urgent: 0,
            options: &self.tcp_options,
        };
        header.write(segment).unwrap().copy_from_slice(&self.payload);
        write_tcp_checksum(segment, pseudo_header, Summer::portable()).unwrap();
    }
}

/// Generates any valid packet.
pub(crate) fn any_shape() -> impl Strategy<Value = Shape> {
    let bytes = |most| proptest::collection::vec(any::<u8>(), 0..=most);
    let tag = (prop_oneof![Just(0x8100_u16), Just(0x88a8)], any::<u16>());
    let extension = (prop_oneof![Just(43_u8), Just(60)], bytes(30));
    let timestamp = any::<[u8; 8]>().prop_map(|values| {
        let mut option = vec![1, 1, 8, 10];
        option.extend(values);
        option
    });
    let link = (proptest::collection::vec(tag, 0..=2), any::<bool>(), any::<bool>(), 0..=40_usize);
    let ip = (any::<u8>(), any::<u8>(), any::<u16>(), proptest::collection::vec(extension, 0..=3));
    let numbers = (any::<u32>(), any::<u32>(), 0..0x1000_u16, any::<u16>(), any::<(u16, u16)>());
    let tcp_options = prop_oneof![Just(vec![]), timestamp, bytes(40)];
    let ip_options = prop_oneof![3 => Just(vec![]), 1 => bytes(40)];
    (link, ip, numbers, tcp_options, ip_options, bytes(300)).prop_map(
        |(link, ip, numbers, tcp_options, ip_options, payload)| Shape {
            tags: link.0,
            is_v6: link.1,
            is_udp: link.2,
            padding: link.3,
            traffic_class: ip.0,
            hop_limit: ip.1,
            id: ip.2,
            extensions: ip.3,
            fragment: Ipv4Header::DONT_FRAGMENT,
            seq: numbers.0,
            ack: numbers.1,
            flags: numbers.2,
            window: numbers.3,
            ports: numbers.4,
            ip_options,
            tcp_options,
            payload,
        },
    )
}
