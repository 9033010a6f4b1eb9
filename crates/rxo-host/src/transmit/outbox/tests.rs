//! A GSO send produces the same segments, byte for byte, no matter who splits it.

use std::net::IpAddr;
use std::ops::Range;

use proptest::prelude::*;
use rxo_device::{MemoryLink, MemoryOptions, SinkCapabilities};
use rxo_frame::LinkKind;
use rxo_tcp::{Reset, Segment, SendBuffer};
use rxo_wire::build::{
    EthernetHeader, Ipv4Header, Ipv6Header, TcpHeader, write_tcp_checksum, write_tcp_seed,
};
use rxo_wire::checksum::{Summer, pseudo_header};
use rxo_wire::tcp::AckRecord;
use rxo_wire::{FlowKey, SeqNumber, TcpFlags};

use super::*;

const NEIGHBOUR: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// A random GSO send and a random device.
#[derive(Clone, Debug)]
struct Scene {
    is_v4: bool,
    link: LinkKind,
    completes_checksums: bool,
    flags: TcpFlags,
    size: u16,
    text: Vec<u8>,
    /// The data begins this many bytes before the end of the send buffer's ring, except for lent data.
    cut: usize,
    /// The range of the data that is lent instead of copied.
    lent: Range<usize>,
    id: u16,
    seq: u32,
}

impl Scene {
    fn pair(&self) -> FlowKey {
        let ports = 0x1234_0050;
        if self.is_v4 {
            FlowKey::v4(0x0a00_0001, 0x0a00_0002, ports, 0)
        } else {
            FlowKey::v6(&std::array::from_fn(|at| 0xfd ^ at as u8), ports, 0)
        }
    }

    /// Puts the data into a send buffer as a connection does: across the end of the ring, and partly lent.
    fn buffer(&self) -> SendBuffer {
        let Range { start, end } = self.lent.clone();
        let mut buffer = SendBuffer::with_capacity(self.text.len() as u32);
        buffer.write(&vec![0; self.text.len() - self.cut]);
        buffer.write(&self.text[..1]);
        buffer.advance((self.text.len() - self.cut) as u32);
        buffer.write(&self.text[1..start]);
        assert_eq!(buffer.append_shared(&mut self.text[start..end].to_vec().into()), end - start);
        buffer.write(&self.text[end..]);
        buffer
    }

    fn transmit<'b>(&self, payload: Text<'b>) -> Transmit<'b> {
        let ack = Segment::<()>::from(&AckRecord { flags: TcpFlags::ACK, ..AckRecord::default() });
        Transmit {
            seq: SeqNumber(self.seq),
            flags: self.flags,
            window: 500,
            payload,
            gso_size: NonZeroU16::new(self.size),
            ..Reset::answer(&ack).unwrap().transmit()
        }
    }

    /// Sends the scene over `link`, through an outbox for a device with `gso_bytes`.
    fn send(&self, outbox: &mut Outbox, link: &MemoryLink) -> Vec<Vec<u8>> {
        let mut path = Path::new(self.pair(), &outbox.shape);
        path.set_destination(NEIGHBOUR);
        let mut ids = self.id;
        let buffer = self.buffer();
        let text = buffer.text(0, u32::MAX);
        outbox.push(&path, &self.transmit(text), &mut ids);
        let segments = self.text.len().div_ceil(self.size.into());
        assert_eq!(ids, self.id.wrapping_add(segments as u16));
        outbox.send_with(&mut link.sink(), |_| text).unwrap();
        let sent = link.take_all();
        assert!(sent.iter().all(|packet| packet.offload.checksum.is_partial() == self.completes()));
        sent.into_iter().map(|packet| packet.bytes).collect()
    }

    fn completes(&self) -> bool {
        self.completes_checksums
    }

    fn outbox(&self, gso_bytes: u32) -> Outbox {
        let capabilities = SinkCapabilities {
            gso_bytes,
            completes_checksums: self.completes_checksums,
            ..SinkCapabilities::with_gso(self.link, 1_500)
        };
        Outbox::new(Shape::new(capabilities, OWN, true), Stopwatch::new(None))
    }

    /// The naive oracle: builds each segment separately.
    fn segments(&self) -> Vec<Vec<u8>> {
        let count = self.text.len().div_ceil(self.size.into());
        let texts = self.text.chunks(self.size.into()).enumerate();
        texts.map(|(at, text)| self.segment(at, at + 1 == count, text)).collect()
    }

    fn segment(&self, at: usize, is_last: bool, text: &[u8]) -> Vec<u8> {
        let pair = self.pair();
        let mut flags = self.flags;
        if !is_last {
            flags = flags.without(TcpFlags::FIN | TcpFlags::PSH);
        }
        if at > 0 {
            flags = flags.without(TcpFlags::CWR);
        }
        let offset = (at * usize::from(self.size)) as u32;
        let whole = self.transmit(Text::EMPTY);
        let tcp = TcpHeader { seq: whole.seq + offset, flags, ..whole.header(&pair) };
        let payload_bytes = tcp.bytes() + text.len();
        let mut packet = self.ip(self.id.wrapping_add(at as u16), payload_bytes);
        let headers = packet.len();
        packet.resize(headers + payload_bytes, 0);
        let segment = &mut packet[headers..];
        tcp.write(segment).unwrap().copy_from_slice(text);
        let pseudo = pseudo_header(&pair, 6, payload_bytes as u32);
        if self.completes_checksums {
            write_tcp_seed(segment, pseudo).unwrap();
        } else {
            write_tcp_checksum(segment, pseudo, Summer::detect()).unwrap();
        }
        packet
    }

    /// Returns the headers before the TCP header.
    fn ip(&self, id: u16, payload_bytes: usize) -> Vec<u8> {
        let ethertype = if self.is_v4 { 0x0800 } else { 0x86dd };
        let ethernet = EthernetHeader { destination: NEIGHBOUR, source: OWN, tags: &[], ethertype };
        let mut out = [0; 54];
        let link = if self.link == LinkKind::Ethernet { 14 } else { 0 };
        if link > 0 {
            ethernet.write(&mut out).unwrap();
        }
        let ip = &mut out[link..];
        let bytes = match (self.pair().source(), self.pair().destination()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let v4 =
                    Ipv4Header { source, destination, id, payload_bytes, ..Ipv4Header::default() };
                Ipv4Header { protocol: 6, ..v4 }.write(ip).unwrap();
                20
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let v6 = Ipv6Header { source, destination, payload_bytes, ..Ipv6Header::default() };
                Ipv6Header { next_header: 6, ..v6 }.write(ip).unwrap();
                40
            }
            _ => unreachable!("one version"),
        };
        out[..link + bytes].to_vec()
    }
}

fn memory(link: LinkKind) -> MemoryLink {
    MemoryLink::new(MemoryOptions { link, ..MemoryOptions::default() })
}

prop_compose! {
    fn scenes()(
        (is_v4, is_raw, completes_checksums) in any::<(bool, bool, bool)>(),
        flags in 0_u16..0x200,
        size in 1_u16..1_500,
        text in proptest::collection::vec(any::<u8>(), 1..6_000),
        (cut, from, to) in any::<[prop::sample::Index; 3]>().prop_map(Into::into),
        (id, seq) in any::<(u16, u32)>(),
    ) -> Scene {
        let link = if is_raw { LinkKind::RawIp } else { LinkKind::Ethernet };
        let flags = TcpFlags::from_bits(flags);
        let cut = 1 + cut.index(text.len());
        let (from, to) = (1 + from.index(text.len()), 1 + to.index(text.len()));
        let lent = from.min(to)..from.max(to);
        let size = size.max((text.len() / 60) as u16 + 1);
        Scene { is_v4, link, completes_checksums, flags, size, text, cut, lent, id, seq }
    }
}

proptest! {
    #[test]
    fn a_large_send_is_cut_where_the_device_does_not(scene in scenes()) {
        let sent = scene.send(&mut scene.outbox(0), &memory(scene.link));
        prop_assert_eq!(sent, scene.segments());
    }

    #[test]
    fn a_large_send_that_is_refused_is_cut_as_well(scene in scenes()) {
        let scene = Scene { completes_checksums: true, ..scene };
        let (mut outbox, link) = (scene.outbox(65_535), memory(scene.link));
        link.refuse_aggregates();
        let is_alone = scene.segments().len() == 1;
        for refused in [1, 1] {
            // A single segment is never refused.
            prop_assume!(!is_alone);
            prop_assert_eq!(scene.send(&mut outbox, &link), scene.segments());
            prop_assert_eq!(outbox.refused(), refused);
        }
    }

    #[test]
    fn a_large_send_leaves_whole_where_the_device_cuts_it(scene in scenes()) {
        let scene = Scene { completes_checksums: true, ..scene };
        let sent = scene.send(&mut scene.outbox(65_535), &memory(scene.link));
        prop_assert_eq!(sent.len(), 1);
        let whole = Scene { size: u16::MAX, ..scene };
        prop_assert_eq!(sent, whole.segments());
    }
}

#[test]
fn a_device_that_refused_is_asked_again_later() {
    let scene = Scene {
        is_v4: true,
        link: LinkKind::RawIp,
        completes_checksums: true,
        flags: TcpFlags::ACK,
        size: 1_000,
        text: vec![7; 2_000],
        cut: 1,
        lent: 1..1,
        id: 0,
        seq: 0,
    };
    let (mut outbox, link) = (scene.outbox(65_535), memory(scene.link));
    link.refuse_aggregates();
    for _ in 0..1_001 {
        assert_eq!(scene.send(&mut outbox, &link).len(), 2);
        assert_eq!(outbox.refused(), 1);
    }
    let (other, count) =
        (Scene { is_v4: false, ..scene.clone() }, link.sink().counters().fallbacks);
    assert_eq!((other.send(&mut outbox, &link).len(), outbox.refused()), (2, 2), "of its own kind");
    assert_eq!((scene.send(&mut outbox, &link).len(), outbox.refused()), (2, 3));
    assert_eq!((link.sink().counters().fallbacks, count), (3, 1));
}
