//! UDP coalesced by the kernel (`rx-udp-gro-forwarding` on a veth) and by rxo: the same frames in one poll
//! give the same large datagrams. The documented differences (docs/policies.md) are tested as well.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::Duration;

use rxo_coalesce::{Config, Delivery, Engine, Policy, UdpRule};
use rxo_device::{FrameSink, FrameSource};
use rxo_driver::{DeviceSink, PacketOptions, PacketSource, wait};
use rxo_frame::{Frame, Instant};
use rxo_testbed::{Namespace, Offload, RateLimit, create_veth};
use rxo_testkit::{Packet, Random, udp};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("the_kernel_and_rxo_make_the_same_large_datagrams", || the_same_large_datagrams(STREAMS)),
    ("the_kernel_delivers_what_it_refuses_before_its_flow", refused_ones_overtake),
    ("the_kernel_merges_64_datagrams_at_most_as_rxo_does", at_most_64),
];

pub(crate) const LONG_TESTS: &[Test] =
    &[("the_kernel_and_rxo_make_the_same_large_datagrams_of_many_streams", || {
        the_same_large_datagrams(MANY_STREAMS)
    })];

/// The number of frames of one poll besides the frame that opens the gate: a veth takes 64.
const MOST_FRAMES: u64 = 62;
/// Number of streams. Each takes some hundredths of a second, in which both sides wait for the kernel's
/// timer.
const STREAMS: u64 = 50;
const MANY_STREAMS: u64 = 200;

fn the_same_large_datagrams(streams: u64) {
    let wire = Wire::new();
    let (mut frames, mut large) = (0, 0);
    for seed in 0..streams {
        let packets = stream(&mut Random::new(seed));
        let (kernel, rxo) =
            (by_flow(wire.through_kernel(&packets)), by_flow(through_rxo(&packets)));
        assert_eq!(kernel, rxo, "seed {seed}: {packets:?}");
        frames += packets.len();
        large += rxo.values().flatten().filter(|one| one.payloads.len() > 1).count();
    }
    eprintln!("{streams} streams, {frames} datagrams, {large} large ones, no difference");
    assert!(large as u64 > streams * 5 / 2, "{large}: they hardly merge");
}

/// Datagrams without a checksum or with a wrong one, and fragments without a UDP header: rxo delivers them in
/// order, the kernel at once, ahead of those that it holds.
fn refused_ones_overtake() {
    let wire = Wire::new();
    for refused in [
        |packet: Packet| packet.no_checksum(),
        |packet: Packet| packet.bad_checksum(),
        |packet: Packet| packet.fragment(64, false),
    ] {
        let base = |number: u32| udp().len(200).seq(number * 200).id(number as u16);
        // The refused datagram leaves no gap in the IDs of the others.
        let mut packets: Vec<_> = (0..6).map(base).collect();
        packets.insert(3, refused(base(9)));
        let groups = |delivered: Vec<Delivered>| -> Vec<usize> {
            delivered.iter().map(|one| one.payloads.len()).collect()
        };
        assert_eq!(groups(through_rxo(&packets)), [3, 1, 3]);
        let kernel = wire.through_kernel(&packets);
        assert_eq!(groups(kernel), [1, 6]);
    }
}

/// The kernel's poll ends after 64 frames, so it is configured to hold datagrams longer. It holds them only
/// until its timer expires, so that some attempts fail.
fn at_most_64() {
    let wire = Wire::new();
    wire.far.interface(FAR).hold_coalesced(Duration::from_millis(20)).unwrap();
    let packets: Vec<_> =
        (0..130_u32).map(|number| udp().len(100).seq(number * 100).id(number as u16)).collect();
    let groups = |delivered: Vec<Delivered>| -> Vec<usize> {
        delivered.iter().map(|one| one.payloads.len()).collect()
    };
    assert_eq!(groups(through_rxo(&packets)), [64, 64, 2]);
    let mut seen = Vec::new();
    for _ in 0..100 {
        seen = groups(wire.through_kernel(&packets));
        assert!(seen.iter().all(|&count| count <= 64), "{seen:?}");
        if seen == [64, 64, 2] {
            return;
        }
    }
    panic!("never 64, 64 and 2, but {seen:?}");
}

/// Returns datagrams of up to four flows: mostly of equal size, some shorter or longer, some with other
/// congestion marks, hop limits or IDs, or without DF.
fn stream(random: &mut Random) -> Vec<Packet> {
    let flows = 1 + random.below(4);
    let size = 1 + random.below(1_400) as usize;
    let calm = random.below(12);
    let mut ids = [0_u16; 4];
    (0..1 + random.below(MOST_FRAMES))
        .map(|number| {
            let flow = random.below(flows);
            let id = &mut ids[flow as usize];
            *id = id.wrapping_add(u16::from(!random.percent(calm)));
            let packet = udp().flow(flow as u32).id(*id).seq(number as u32 * 1_500).len(size);
            let packet = if flow % 2 == 1 { packet.v6() } else { packet };
            if random.percent(calm) { vary(packet, size, random) } else { packet }
        })
        .collect()
}

fn vary(packet: Packet, size: usize, random: &mut Random) -> Packet {
    match random.below(6) {
        0 => packet.len(1 + random.below(size as u64) as usize),
        1 => packet.len(size + 1 + random.below(60) as usize),
        2 => packet.ttl(9),
        3 => packet.tos(random.below(4) as u8),
        4 => packet.tos(0x28),
        _ => packet.df(false),
    }
}

/// A datagram as its receiver gets it: the header without the checksum, which is partial in large datagrams,
/// and the payloads after segmentation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Delivered {
    header: Vec<u8>,
    payloads: Vec<Vec<u8>>,
}

impl Delivered {
    fn new(mut header: Vec<u8>, payloads: Vec<Vec<u8>>) -> Self {
        let at = header.len() - 2;
        header[at..].fill(0);
        Self { header, payloads }
    }

    fn single(bytes: &[u8]) -> Self {
        let (header, payload) = bytes.split_at(header_bytes(bytes));
        Self::new(header.to_vec(), vec![payload.to_vec()])
    }

    /// Returns the addresses and the ports of the datagram.
    fn flow(&self) -> Vec<u8> {
        let end = self.header.len();
        let addresses = if end == 42 { 26..34 } else { 22..54 };
        [&self.header[addresses], &self.header[end - 8..end - 4]].concat()
    }
}

/// Returns the header length of a datagram without tags and options.
fn header_bytes(frame: &[u8]) -> usize {
    if frame[12..14] == [0x08, 0x00] { 42 } else { 62 }
}

/// Groups by flow, because the order across flows at the end of a poll differs: the kernel's follows its
/// hash.
fn by_flow(delivered: Vec<Delivered>) -> BTreeMap<Vec<u8>, Vec<Delivered>> {
    let mut flows: BTreeMap<_, Vec<_>> = BTreeMap::new();
    delivered.into_iter().for_each(|one| flows.entry(one.flow()).or_default().push(one));
    flows
}

fn through_rxo(packets: &[Packet]) -> Vec<Delivered> {
    let policy = Policy { udp: UdpRule::Equal, ..Policy::linux_gro() };
    let mut engine = Engine::<Vec<u8>>::new(Config::new(policy, 1)).unwrap();
    let mut delivered = Vec::new();
    let mut batch: Vec<_> = packets.iter().map(Packet::frame).collect();
    engine.poll(&mut batch, Instant::ZERO, |deliveries| {
        delivered.extend(deliveries.iter().map(|delivery| match delivery {
            Delivery::Frame(one) => Delivered::single(one.frame().bytes()),
            Delivery::Aggregate(many) => {
                let payloads = many.payloads().map(<[u8]>::to_vec).collect();
                Delivered::new(many.header().to_vec(), payloads)
            }
            Delivery::Acks(_) => panic!("there are none"),
        }));
    });
    delivered
}

const NEAR: &str = "near0";
const FAR: &str = "far0";

/// A veth whose far end coalesces UDP.
struct Wire {
    near: Namespace,
    far: Namespace,
}

impl Wire {
    fn new() -> Self {
        let [near, far] = ["near", "far"].map(|label| {
            let namespace = Namespace::new(label).unwrap();
            if namespace.has_ipv6() {
                // Only the test's own frames may be on the wire.
                namespace.set_sysctl("net.ipv6.conf.default.disable_ipv6", "1").unwrap();
            }
            namespace
        });
        create_veth(&near.interface(NEAR), &far.interface(FAR)).unwrap();
        for which in [Offload::GenericReceive, Offload::UdpForwarding] {
            far.interface(FAR).set_offload(which, true).unwrap();
        }
        near.interface(NEAR).up().unwrap();
        far.interface(FAR).up().unwrap();
        near.interface(NEAR).await_wire().unwrap();
        Self { near, far }
    }

    /// Sends `packets` so that they arrive in one poll of the kernel, as far as they fit, and returns what it
    /// delivers.
    fn through_kernel(&self, packets: &[Packet]) -> Vec<Delivered> {
        let open = || PacketSource::open(FAR, PacketOptions::default()).unwrap();
        let mut source = self.far.run(open).unwrap();
        self.near.run(|| self.send(packets)).unwrap();
        let mut delivered: Vec<Delivered> = Vec::new();
        let count = |delivered: &[Delivered]| -> usize {
            delivered.iter().map(|one| one.payloads.len()).sum()
        };
        while count(&delivered) < packets.len() {
            let mut frames = Vec::new();
            if source.receive(&mut frames, 64).unwrap() == 0 {
                let arrived = wait::wait_readable(&[source.as_fd()], Some(Duration::from_secs(30)));
                assert!(arrived.is_ok(), "{} of {} arrived", count(&delivered), packets.len());
            }
            let is_ip = |frame: &&Frame<_>| frame.bytes()[12..14] != SPARE;
            delivered.extend(frames.iter().filter(is_ip).map(as_delivered));
        }
        delivered
    }

    /// Packets wait in an empty token bucket; once it is enlarged, the next frame releases them all.
    fn send(&self, packets: &[Packet]) {
        rxo_testbed::pin_to_core(0).unwrap();
        let near = self.near.interface(NEAR);
        near.limit_rate(RateLimit { bytes_per_s: 1, burst_bytes: 1_514, queue_bytes: 1 << 20 })
            .unwrap();
        let mut sink = DeviceSink::packet(NEAR).unwrap();
        let mut send = |frames: &[Vec<u8>]| {
            let frames = frames.iter().map(|bytes| Frame::new(&bytes[..], Instant::ZERO));
            sink.transmit(frames).unwrap();
        };
        send(&[spare(1_514)]);
        send(&packets.iter().map(Packet::bytes).collect::<Vec<_>>());
        let open = RateLimit { bytes_per_s: 1 << 30, burst_bytes: 1 << 20, queue_bytes: 1 << 20 };
        near.limit_rate(open).unwrap();
        send(&[spare(60)]);
    }
}

fn as_delivered(frame: &Frame<rxo_driver::DeviceBuf>) -> Delivered {
    let bytes = frame.bytes();
    let Some(gso) = frame.gso else { return Delivered::single(bytes) };
    let (header, payload) = bytes.split_at(header_bytes(bytes));
    let payloads = payload.chunks(gso.size.get().into()).map(<[u8]>::to_vec).collect();
    Delivered::new(header.to_vec(), payloads)
}

/// An EtherType that no stack handles.
const SPARE: [u8; 2] = [0x88, 0xb5];

fn spare(bytes: usize) -> Vec<u8> {
    let mut frame = [[0xff; 6], [2, 0, 0, 0, 0, 1]].concat();
    frame.extend(SPARE);
    frame.resize(bytes, 0);
    frame
}
