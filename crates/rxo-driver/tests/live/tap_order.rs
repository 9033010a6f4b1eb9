//! Tests that writes keep their order in each submit mode, also when the kernel refuses some of them.

use std::net::{Ipv4Addr, UdpSocket};

use rxo_device::FrameSink;
use rxo_driver::{DeviceSink, SubmitMode, Tap, TapKind};
use rxo_frame::{ChecksumStatus, Offload};

use crate::Test;
use crate::network::{LONG, quiet_namespace};
use crate::packets::{Pieces, tcp_gso, udp_frame, udp_packet};

pub(crate) const TESTS: &[Test] = &[
    ("writes_of_io_uring_arrive_in_order", || in_order(SubmitMode::Uring)),
    ("writes_of_writev_arrive_in_order", || in_order(SubmitMode::Writev)),
    ("packets_of_a_tun_arrive_in_order", tun_in_order),
    ("a_refused_aggregate_arrives_as_its_frames_io_uring", || refused(SubmitMode::Uring)),
    ("a_refused_aggregate_arrives_as_its_frames_writev", || refused(SubmitMode::Writev)),
    ("a_refused_super_packet_is_dropped_and_the_rest_goes", refused_super_packet),
    ("a_packet_in_too_many_pieces_goes_as_its_frames", too_many_pieces),
];

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 1);

/// A TAP, and a socket in the stack behind it that receives numbered datagrams.
struct Target {
    tap: Tap,
    socket: UdpSocket,
    port: u16,
}

impl Target {
    /// Runs `test` with a target in a network of its own.
    fn with(kind: TapKind, test: impl FnOnce(&Self) + Send) {
        let host = quiet_namespace("host");
        host.run(|| {
            let tap = Tap::open("rxo0", kind).unwrap();
            host.interface("rxo0").add_address(ADDRESS.into(), 24).unwrap();
            host.interface("rxo0").up().unwrap();
            let socket = UdpSocket::bind((ADDRESS, 0)).unwrap();
            socket.set_read_timeout(Some(LONG)).unwrap();
            let port = socket.local_addr().unwrap().port();
            test(&Self { tap, socket, port });
        })
        .unwrap();
    }

    fn datagram(&self, number: u32) -> Vec<u8> {
        let payload = number.to_be_bytes();
        match self.tap.kind() {
            TapKind::Tun => udp_packet(ADDRESS, self.port, &payload),
            TapKind::Tap => {
                let mac = self.tap.interface().hardware_address().unwrap();
                udp_frame(mac, ADDRESS, self.port, &payload)
            }
        }
    }

    /// Creates one datagram in two slices; those with odd numbers are marked as having verified checksums.
    fn single(&self, number: u32) -> Pieces {
        let mut packet = Pieces::cut(&self.datagram(number), 20, 100);
        if number % 2 == 1 {
            packet.offload.checksum = ChecksumStatus::Verified;
        }
        packet
    }

    /// Creates a packet that is marked as a TCP aggregate but is none, standing for these datagrams.
    fn absurd(&self, numbers: std::ops::Range<u32>) -> Pieces {
        let frames: Vec<_> = numbers.map(|n| self.datagram(n)).collect();
        let checksum = ChecksumStatus::Partial { start: 60_000, offset: 16 };
        let offload = Offload { checksum, gso: tcp_gso(100), header_bytes: 54 };
        Pieces { slices: frames.clone(), offload, frames, vlan: None }
    }

    fn receive(&self) -> u32 {
        let mut number = [0; 4];
        assert_eq!(self.socket.recv(&mut number).unwrap(), 4);
        u32::from_be_bytes(number)
    }

    fn assert_receives(&self, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            assert_eq!(self.receive(), number);
        }
    }
}

fn send(sink: &mut DeviceSink, packets: &[Pieces]) {
    sink.transmit(packets.iter()).unwrap();
}

fn in_order(mode: SubmitMode) {
    Target::with(TapKind::Tap, |target| {
        let mut sink = target.tap.sink(mode).unwrap();
        assert_eq!(sink.is_batched(), mode == SubmitMode::Uring);
        for round in 0..100 {
            let numbers = round * 200..round * 200 + 200;
            let packets: Vec<_> = numbers.clone().map(|n| target.single(n)).collect();
            send(&mut sink, &packets);
            target.assert_receives(numbers);
        }
        let counters = sink.counters();
        assert_eq!((counters.packets, counters.dropped), (20_000, 0));
        match mode {
            SubmitMode::Uring => assert!(counters.submissions <= 400, "{counters:?}"),
            _ => assert_eq!(counters.submissions, 20_000),
        }
    });
}

fn tun_in_order() {
    Target::with(TapKind::Tun, |target| {
        let mut sink = target.tap.sink(SubmitMode::Auto).unwrap();
        let packets: Vec<_> = (0..150).map(|n| target.single(n)).collect();
        send(&mut sink, &packets);
        target.assert_receives(0..150);
    });
}

fn refused(mode: SubmitMode) {
    Target::with(TapKind::Tap, |target| {
        let mut sink = target.tap.sink(mode).unwrap();
        assert_eq!(sink.take_notice(), None);
        let packets =
            [target.single(0), target.absurd(1..5), target.single(5), target.absurd(6..8)];
        send(&mut sink, &packets);
        target.assert_receives(0..8);
        let notice = sink.take_notice().unwrap();
        assert!(notice.contains("the system refused an aggregate of TCP over IPv4"), "{notice}");
        send(&mut sink, &[target.absurd(8..10), target.single(10)]);
        target.assert_receives(8..11);
        assert_eq!(sink.take_notice(), None, "said once");
        let counters = sink.counters();
        assert_eq!((counters.packets, counters.frames), (11, 11));
        assert_eq!((counters.fallbacks, counters.dropped), (3, 0));
    });
}

fn refused_super_packet() {
    Target::with(TapKind::Tap, |target| {
        let mut sink = target.tap.sink(SubmitMode::Auto).unwrap();
        let mut super_packet = target.absurd(0..1);
        super_packet.frames.clear();
        send(&mut sink, &[target.single(1), super_packet, target.single(2)]);
        target.assert_receives(1..3);
        assert_eq!((sink.counters().packets, sink.counters().dropped), (2, 1));
    });
}

fn too_many_pieces() {
    Target::with(TapKind::Tap, |target| {
        let mut sink = target.tap.sink(SubmitMode::Auto).unwrap();
        let mut packet = target.absurd(0..3);
        packet.slices = vec![vec![0; 1]; 1_024];
        send(&mut sink, &[packet, target.single(3)]);
        target.assert_receives(0..4);
        assert_eq!(sink.counters().fallbacks, 1);
    });
}
