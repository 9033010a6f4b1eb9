//! Packets in tunnels: parsed, and segmented; compared with packets that are wrapped one by one.

use core::num::NonZeroU16;

use proptest::prelude::*;
use rxo_wire::build::{EthernetHeader, Ipv4Header, Ipv6Header};
use rxo_wire::checksum::{Sum, Summer};
use rxo_wire::segmentation::{
    Checksums, Segments, Stated, segment, segment_inside, segment_stated,
};
use rxo_wire::tunnel::{Carrier, Tunnel, inside_at};
use rxo_wire::{Parsed, TcpFlags, parse};

use crate::packets::{DESTINATION_V4, DESTINATION_V6, SOURCE_V4, SOURCE_V6, Shape, any_shape};

const COMPLETE: Checksums = Checksums::Complete(Summer::portable());

/// A tunnel, and the header fields that differ from packet to packet.
#[derive(Clone, Debug)]
struct Wrapping {
    kind: Kind,
    is_v6: bool,
    has_checksum: bool,
    id: u16,
    port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Vxlan,
    VxlanGpe,
    Geneve { option_words: u8, is_ethernet: bool },
    Fou,
    Gue { option_words: u8 },
    GreInUdp,
    Gre { has_key: bool, is_ethernet: bool },
    IpInIp,
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Vxlan),
        Just(Kind::VxlanGpe),
        (0..4_u8, any::<bool>())
            .prop_map(|(option_words, is_ethernet)| Kind::Geneve { option_words, is_ethernet }),
        Just(Kind::Fou),
        (0..3_u8).prop_map(|option_words| Kind::Gue { option_words }),
        Just(Kind::GreInUdp),
        (any::<bool>(), any::<bool>())
            .prop_map(|(has_key, is_ethernet)| Kind::Gre { has_key, is_ethernet }),
        Just(Kind::IpInIp),
    ]
}

fn any_wrapping() -> impl Strategy<Value = Wrapping> {
    (any_kind(), any::<bool>(), any::<bool>(), any::<u16>(), 1024..u16::MAX).prop_map(
        |(kind, is_v6, has_checksum, id, port)| Wrapping { kind, is_v6, has_checksum, id, port },
    )
}

impl Wrapping {
    /// Builds the Ethernet frame that contains `inner`, the packet with number `index` of a sender whose IDs
    /// increment.
    fn wrap(&self, inner: &Shape, index: u16) -> Vec<u8> {
        let body = self.body(inner);
        let protocol = match self.kind {
            Kind::Gre { .. } => 47,
            Kind::IpInIp if inner.is_v6 => 41,
            Kind::IpInIp => 4,
            _ => 17,
        };
        let ethertype = if self.is_v6 { 0x86dd } else { 0x0800 };
        let ip_bytes = if self.is_v6 { 40 } else { 20 };
        let mut frame = vec![0; 14 + ip_bytes + body.len()];
        let link = EthernetHeader { ethertype, ..EthernetHeader::default() };
        let packet = link.write(&mut frame).unwrap();
        let rest = if self.is_v6 {
            let ip = Ipv6Header {
                source: SOURCE_V6.into(),
                destination: DESTINATION_V6.into(),
                next_header: protocol,
                payload_bytes: body.len(),
                ..Ipv6Header::default()
            };
            ip.write(packet).unwrap()
        } else {
            let ip = Ipv4Header {
                source: SOURCE_V4.into(),
                destination: DESTINATION_V4.into(),
                protocol,
                id: self.id.wrapping_add(index),
                payload_bytes: body.len(),
                ..Ipv4Header::default()
            };
            ip.write(packet).unwrap()
        };
        rest.copy_from_slice(&body);
        frame
    }

    fn addresses(&self) -> Sum {
        match self.is_v6 {
            true => Sum::of(&SOURCE_V6) + Sum::of(&DESTINATION_V6),
            false => Sum::of(&SOURCE_V4) + Sum::of(&DESTINATION_V4),
        }
    }

    /// Builds everything after the outer IP header.
    fn body(&self, inner: &Shape) -> Vec<u8> {
        let ip_type: [u8; 2] = if inner.is_v6 { [0x86, 0xdd] } else { [8, 0] };
        let typed = |is_ethernet| if is_ethernet { [0x65, 0x58] } else { ip_type };
        let carried = |is_ethernet| if is_ethernet { inner.frame() } else { inner.packet() };
        let payload = match self.kind {
            Kind::Vxlan => [&[8, 0, 0, 0, 0, 0, 7, 0], &carried(true)[..]].concat(),
            Kind::VxlanGpe => {
                let next = if inner.is_v6 { 2 } else { 1 };
                [&[0x0c, 0, 0, next, 0, 0, 7, 0], &carried(false)[..]].concat()
            }
            Kind::Geneve { option_words, is_ethernet } => {
                let [a, b] = typed(is_ethernet);
                let options = vec![0xee; usize::from(option_words) * 4];
                [&[option_words, 0, a, b, 0, 0, 7, 0], &options[..], &carried(is_ethernet)].concat()
            }
            Kind::Fou => carried(false),
            Kind::Gue { option_words } => {
                let options = vec![0xee; usize::from(option_words) * 4];
                let protocol = if inner.is_v6 { 41 } else { 4 };
                [&[option_words, protocol, 0, 0], &options[..], &carried(false)].concat()
            }
            Kind::GreInUdp => [&[0, 0], &ip_type[..], &carried(false)].concat(),
            Kind::IpInIp => return carried(false),
            Kind::Gre { has_key, is_ethernet } => {
                return self.gre(has_key, typed(is_ethernet), &carried(is_ethernet));
            }
        };
        self.datagram(&payload)
    }

    fn gre(&self, has_key: bool, typed: [u8; 2], carried: &[u8]) -> Vec<u8> {
        let flags = u8::from(self.has_checksum) << 7 | u8::from(has_key) << 5;
        let checksum = if self.has_checksum { vec![0; 4] } else { vec![] };
        let key = if has_key { vec![0xaa; 4] } else { vec![] };
        let mut gre = [&[flags, 0], &typed[..], &checksum, &key, carried].concat();
        if self.has_checksum {
            let sum = Summer::portable().sum(&gre).checksum();
            gre[4..6].copy_from_slice(&sum.to_be_bytes());
        }
        gre
    }

    fn datagram(&self, payload: &[u8]) -> Vec<u8> {
        let bytes = 8 + payload.len();
        let ports = [49_152_u16.to_be_bytes(), self.port.to_be_bytes()].concat();
        let mut datagram = [&ports[..], &(bytes as u16).to_be_bytes(), &[0, 0], payload].concat();
        if self.has_checksum {
            let pseudo = self.addresses() + Sum::word(17) + Sum::long(bytes as u32);
            let sum = (pseudo + Summer::portable().sum(&datagram)).checksum();
            datagram[6..8].copy_from_slice(&if sum == 0 { u16::MAX } else { sum }.to_be_bytes());
        }
        datagram
    }
}

/// A GSO frame inside a tunnel.
#[derive(Clone, Debug)]
struct Gso {
    wrapping: Wrapping,
    whole: Shape,
    size: NonZeroU16,
}

fn any_gso() -> impl Strategy<Value = Gso> {
    let payload = proptest::collection::vec(any::<u8>(), 1..3_000);
    (any_wrapping(), any_shape(), payload, 1..1_500_u16).prop_map(
        |(wrapping, shape, payload, size)| Gso {
            wrapping,
            whole: Shape { payload, extensions: vec![], padding: 0, ..shape },
            size: NonZeroU16::new(size).unwrap(),
        },
    )
}

impl Gso {
    fn frame(&self) -> Vec<u8> {
        self.wrapping.wrap(&self.whole, 0)
    }

    /// Returns the offset of the inner transport header, in bytes.
    fn transport(&self) -> usize {
        let inner = self.whole.packet().len() - self.whole.ip_header_bytes();
        self.frame().len() - inner
    }

    /// Builds and wraps each segment separately: the naive oracle.
    fn segments(&self) -> Vec<Vec<u8>> {
        let size = usize::from(self.size.get());
        let last = self.whole.payload.len().div_ceil(size) - 1;
        let chunks = self.whole.payload.chunks(size).enumerate();
        chunks.map(|(at, payload)| self.segment(at, at == last, payload)).collect()
    }

    fn segment(&self, at: usize, is_last: bool, payload: &[u8]) -> Vec<u8> {
        let mut flags = TcpFlags::from_bits(self.whole.flags);
        if at > 0 {
            flags = flags.without(TcpFlags::CWR);
        }
        if !is_last {
            flags = flags.without(TcpFlags::PSH | TcpFlags::FIN);
        }
        let id =
            if self.whole.is_v6 { self.whole.id } else { self.whole.id.wrapping_add(at as u16) };
        let inner = Shape {
            id,
            seq: self.whole.seq.wrapping_add(at as u32 * u32::from(self.size.get())),
            flags: flags.bits(),
            payload: payload.to_vec(),
            ..self.whole.clone()
        };
        self.wrapping.wrap(&inner, at as u16)
    }
}

fn frames(mut segments: Segments<'_>) -> Vec<Vec<u8>> {
    let (mut buffer, mut frames) = (vec![0xa5; 8_000], Vec::new());
    while let Some(bytes) = segments.next_into(&mut buffer).unwrap() {
        frames.push(buffer[..bytes].to_vec());
    }
    frames
}

proptest! {
    #[test]
    fn segments_of_a_tunnel_are_the_packets_that_were_wrapped_one_by_one(gso in any_gso()) {
        let frame = gso.frame();
        let outer = parse(&frame).unwrap();
        let inside = inside_at(&frame, &outer, gso.transport()).unwrap();
        let segments = segment_inside(&frame, &inside, gso.size, COMPLETE).unwrap();
        prop_assert_eq!(frames(segments), gso.segments());
    }

    /// Tests local checksum offload: the outer checksum is equal for a complete and for a partial inner
    /// checksum.
    #[test]
    fn a_device_completes_only_the_inner_checksums(gso in any_gso()) {
        let frame = gso.frame();
        let outer = parse(&frame).unwrap();
        let (protocol, field) = if gso.whole.is_udp { (17, 6) } else { (6, 16) };
        let transport = Some(gso.transport());
        let stated = Stated { protocol, is_v6: Some(gso.whole.is_v6), transport };
        let partial = segment_stated(&frame, &outer, stated, gso.size, Checksums::Partial).unwrap();
        for (mut segment, expected) in frames(partial).into_iter().zip(gso.segments()) {
            let at = gso.transport();
            let sum = rxo_wire::checksum::complete(&segment, at, field, Summer::portable()).unwrap();
            segment[at + field..at + field + 2].copy_from_slice(&sum.to_be_bytes());
            prop_assert_eq!(segment, expected);
        }
    }

    /// Segments with an outer UDP checksum result from a UDP GSO frame that is divided without parsing its
    /// payload.
    #[test]
    fn segments_that_are_datagrams_come_out_of_a_train(gso in any_gso()) {
        let frame = gso.frame();
        let outer = parse(&frame).unwrap();
        let inside = inside_at(&frame, &outer, gso.transport()).unwrap();
        let mut segments = segment_inside(&frame, &inside, gso.size, COMPLETE).unwrap();
        let is_udp = matches!(inside.carrier, Carrier::Udp { .. });
        prop_assert_eq!(segments.datagrams().is_some(), is_udp && gso.wrapping.has_checksum);
        let Some(udp) = segments.datagrams() else { return Ok(()) };
        let expected = frames(segments.clone());
        while segments.next_into(&mut [0; 8_000]).unwrap().is_some() {}
        let head = udp + 8;
        let bodies: Vec<_> = expected.iter().flat_map(|frame| frame[head..].to_vec()).collect();
        let mut train = [&expected[0][..head], &bodies].concat();
        let is_written = segments.train_headers(&mut train[..head], expected.len(), bodies.len());
        let uncounted = outer.at.network as usize + if gso.wrapping.is_v6 { 40 } else { 0 };
        prop_assert_eq!(is_written.is_ok(), train.len() - uncounted <= 65_535);
        if is_written.is_ok() {
            let size = NonZeroU16::new((expected[0].len() - head) as u16).unwrap();
            let divided = segment(&train, &parse(&train).unwrap(), size, COMPLETE).unwrap();
            prop_assert_eq!(frames(divided), expected);
        }
    }

    #[test]
    fn a_packet_inside_is_found_by_the_place_of_its_transport_header_alone(gso in any_gso()) {
        let frame = gso.frame();
        let outer = parse(&frame).unwrap();
        let inside = inside_at(&frame, &outer, gso.transport()).unwrap();
        prop_assert_eq!(inside.outer, outer.at);
        prop_assert_eq!(inside.parsed.at.end as usize, frame.len());
        prop_assert_eq!(inside.parsed.payload_bytes() as usize, gso.whole.payload.len());
        let is_udp = !matches!(gso.wrapping.kind, Kind::Gre { .. } | Kind::IpInIp);
        prop_assert_eq!(matches!(inside.carrier, Carrier::Udp { .. }), is_udp);
        prop_assert_eq!(inside_at(&frame, &outer, gso.transport() + 2), None);
    }

    /// The outer checksum follows from the headers, even changed ones, as long as the inner checksum is
    /// right.
    #[test]
    fn an_outer_checksum_is_verified_without_the_payload(
        gso in any_gso(), at in any::<prop::sample::Index>(), by in 0..2_u8,
    ) {
        let mut frame = gso.frame();
        let outer = parse(&frame).unwrap();
        let inside = inside_at(&frame, &outer, gso.transport()).unwrap();
        // These bytes, the tunnel header and the inner link header, do not affect the parsed fields.
        let place = outer.at.payload as usize + at.index(gso.transport() - outer.at.payload as usize);
        let is_udp = matches!(inside.carrier, Carrier::Udp { .. });
        frame[place] ^= by;
        let is_right = rxo_wire::checksum::verify_transport(&outer, &frame, Summer::portable());
        let has_none = matches!(inside.carrier, Carrier::Udp { has_checksum: false });
        prop_assert_eq!(inside.outer_checksum_holds(&frame, &outer), is_udp && (has_none || is_right));
    }

    #[test]
    fn any_bytes_in_a_tunnel_are_segmented_or_refused(
        gso in any_gso(), at in any::<prop::sample::Index>(), byte: u8, length in 0_usize..200,
    ) {
        let mut frame = gso.frame();
        let place = at.index(120.min(frame.len()));
        frame[place] = byte;
        frame.truncate(frame.len().saturating_sub(length.saturating_sub(150)));
        let Ok(outer) = parse(&frame) else { return Ok(()) };
        for tunnel in [Tunnel::Vxlan, Tunnel::Geneve] {
            let _any = tunnel.inside(&frame, &outer);
        }
        for transport in 0..frame.len().min(160) {
            let Some(inside) = inside_at(&frame, &outer, transport) else { continue };
            let Ok(mut segments) = segment_inside(&frame, &inside, gso.size, COMPLETE) else { continue };
            let (mut buffer, mut payload) = (vec![0; 8_000], Vec::new());
            let Parsed { at, .. } = inside.parsed;
            while let Ok(Some(bytes)) = segments.next_into(&mut buffer) {
                payload.extend_from_slice(&buffer[at.payload as usize..bytes]);
            }
            prop_assert_eq!(&payload, &frame[at.payload_range()]);
        }
    }
}

#[test]
fn the_tunnel_of_a_port_has_the_packet_inside() {
    for (kind, port) in
        [(Kind::Vxlan, 4_789), (Kind::Geneve { option_words: 2, is_ethernet: true }, 6_081)]
    {
        let wrapping = Wrapping { kind, is_v6: false, has_checksum: false, id: 3, port };
        let frame = wrapping.wrap(&Shape::default(), 0);
        let outer = parse(&frame).unwrap();
        let inside = Tunnel::of_port(port).unwrap().inside(&frame, &outer).unwrap();
        assert_eq!(inside.parsed.key.destination_port(), 443);
        assert_eq!(&frame[inside.parsed.at.payload_range()], b"payload");
    }
}

#[test]
fn a_flow_inside_is_named_by_the_network() {
    let kind = Kind::Vxlan;
    let wrapping = Wrapping { kind, is_v6: false, has_checksum: false, id: 3, port: 4_789 };
    let mut frame = wrapping.wrap(&Shape::default(), 0);
    let outer = parse(&frame).unwrap();
    let key = |frame: &[u8]| Tunnel::Vxlan.inside(frame, &outer).unwrap().parsed.key;
    let plain = parse(&Shape::default().frame()).unwrap().key;
    assert_eq!(key(&frame), plain.in_tunnel(Tunnel::Vxlan, 7));
    frame[14 + 20 + 8 + 6] = 8;
    assert_eq!(key(&frame), plain.in_tunnel(Tunnel::Vxlan, 8));
}

/// The first half byte of another protocol may look like an IP version.
#[test]
fn an_inner_frame_of_another_type_is_no_packet() {
    let kind = Kind::Vxlan;
    let wrapping = Wrapping { kind, is_v6: false, has_checksum: false, id: 3, port: 4_789 };
    let mut frame = wrapping.wrap(&Shape::default(), 0);
    let outer = parse(&frame).unwrap();
    assert!(Tunnel::Vxlan.inside(&frame, &outer).is_some());
    frame[14 + 20 + 8 + 8 + 13] = 6;
    assert_eq!(Tunnel::Vxlan.inside(&frame, &outer), None);
}

/// A tunnel header with a control flag, critical options or reserved bits is not parsed, so the packet inside
/// is not either.
#[test]
fn a_header_that_says_more_than_the_tunnel_knows_hides_its_packet() {
    let wrapping = |kind| Wrapping { kind, is_v6: false, has_checksum: false, id: 3, port: 9 };
    for (kind, tunnel, byte, value) in [
        (Kind::Vxlan, Tunnel::Vxlan, 0, 0x0c),
        (Kind::Geneve { option_words: 0, is_ethernet: true }, Tunnel::Geneve, 1, 0x40),
        (Kind::Geneve { option_words: 0, is_ethernet: true }, Tunnel::Geneve, 1, 0x80),
        (Kind::Geneve { option_words: 0, is_ethernet: false }, Tunnel::Geneve, 0, 0x40),
    ] {
        let mut frame = wrapping(kind).wrap(&Shape::default(), 0);
        frame[14 + 20 + 8 + byte] = value;
        assert_eq!(tunnel.inside(&frame, &parse(&frame).unwrap()), None, "{kind:?}");
    }
}
