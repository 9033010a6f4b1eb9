//! Tests of sending through a packet socket.

use std::num::NonZeroU16;

use rxo_device::{DeviceError, FrameSink};
use rxo_driver::{DeviceSink, PacketOptions, PacketSource};
use rxo_frame::{ChecksumStatus, Frame, Gso, GsoKind, Offload, VlanTag};
use rxo_testbed::{Offload as Feature, RateLimit};

use crate::Test;
use crate::network::{FAR, LONG, NEAR, Pair, receive, stay_on_one_core};
use crate::packets::{
    Pieces, TCP_PARTIAL, folded_sum, number_of, numbered, plain, tcp_gso, tcp_header, udp_frame,
};

pub(crate) const TESTS: &[Test] = &[
    ("a_batch_larger_than_a_chunk_goes_out_in_order", large_batch),
    ("partial_checksums_are_completed_where_the_interface_does_not", completes_checksums),
    ("aggregates_are_cut_where_the_interface_cannot", cuts_aggregates),
    ("aggregates_of_datagrams_are_cut_by_the_kernel", cuts_datagrams),
    ("a_vlan_tag_is_put_back_into_the_frame", vlan_tag),
    ("a_frame_beyond_the_mtu_is_dropped_and_the_rest_goes", too_long),
    ("what_waits_in_the_queue_of_the_interface_is_known", tells_what_waits),
    ("what_a_full_queue_of_the_interface_refuses_is_kept", keeps_what_a_full_queue_refuses),
    ("what_an_empty_queue_of_the_interface_refuses_is_dropped", drops_what_an_empty_queue_refuses),
    ("a_sink_whose_interface_is_down_drops_until_it_is_up", down),
    ("a_sink_whose_interface_is_deleted_says_so", deleted),
];

/// Runs `send` with a sink at the near end; returns the bytes of the frames that arrive at the far end.
fn through(pair: &Pair, count: usize, send: impl FnOnce(&mut DeviceSink) + Send) -> Vec<Vec<u8>> {
    let receive = || {
        let mut source = PacketSource::open(FAR, PacketOptions::default()).unwrap();
        let send = || {
            stay_on_one_core();
            send(&mut DeviceSink::packet(NEAR).unwrap());
        };
        pair.near.run(send).unwrap();
        receive(&mut source, count).iter().map(|frame| frame.bytes().to_vec()).collect()
    };
    pair.far.run(receive).unwrap()
}

/// Creates a TCP segment of 10 × 1,000 bytes, in several slices, with a partial checksum.
fn aggregate() -> Pieces {
    let payload: Vec<u8> = (0..10_000_u32).map(|n| (n % 241) as u8).collect();
    let bytes = [tcp_header(payload.len()), payload].concat();
    let mut aggregate = Pieces::cut(&bytes, 54, 700);
    aggregate.offload = Offload { checksum: TCP_PARTIAL, gso: tcp_gso(1_000), header_bytes: 54 };
    aggregate
}

/// Returns the ones' complement sum over the pseudo-header and the segment: all ones when the checksum is
/// right.
fn tcp_sum(frame: &[u8]) -> u16 {
    let segment = &frame[34..];
    let pseudo = [&frame[26..34], &[0, 6], &(segment.len() as u16).to_be_bytes()].concat();
    folded_sum(&[&pseudo, segment].concat())
}

fn large_batch() {
    let pair = Pair::silent();
    let frames: Vec<_> = (0..500).map(|n| numbered(n, 100)).collect();
    let received = through(&pair, 500, |sink| {
        let status = [ChecksumStatus::Unknown, ChecksumStatus::Verified];
        let said = |(frame, n): (Frame<_>, usize)| Frame { checksum: status[n % 2], ..frame };
        sink.transmit(plain(&frames).zip(0..500).map(said)).unwrap();
        let counters = sink.counters();
        assert_eq!((counters.packets, counters.frames, counters.bytes), (500, 500, 50_000));
        assert!(counters.submissions <= 8, "{}", counters.submissions);
    });
    assert!(received == frames);
}

fn completes_checksums() {
    let pair = Pair::silent();
    pair.near.interface(NEAR).set_offload(Feature::TransmitChecksum, false).unwrap();
    let bytes = [tcp_header(101), vec![0xa5; 101]].concat();
    assert_ne!(tcp_sum(&bytes), 0xffff);
    let mut packet = Pieces::cut(&bytes, 54, 13);
    packet.offload.checksum = TCP_PARTIAL;
    let received = through(&pair, 1, |sink| sink.transmit([&packet].into_iter()).unwrap());
    assert_eq!(tcp_sum(&received[0]), 0xffff);
    assert_eq!(received[0][54..], bytes[54..]);
}

fn cuts_aggregates() {
    let pair = Pair::silent();
    let near = pair.near.interface(NEAR);
    near.set_offload(Feature::TransmitSegmentation, false).unwrap();
    near.set_offload(Feature::TransmitChecksum, false).unwrap();
    let aggregate = aggregate();
    let received = through(&pair, 10, |sink| {
        sink.transmit([&aggregate].into_iter()).unwrap();
        assert_eq!(sink.counters().fallbacks, 0);
    });
    for frame in &received {
        assert_eq!(frame.len(), 1_054);
        assert_eq!(tcp_sum(frame), 0xffff);
    }
    let payload: Vec<u8> = received.iter().flat_map(|frame| frame[54..].to_vec()).collect();
    assert!(payload == aggregate.slices[1..].concat());
}

/// A kernel that knows UDP GSO frames on packet sockets (Linux 6.2 and later) cuts them; for older kernels
/// the sink cuts them itself.
fn cuts_datagrams() {
    let pair = Pair::silent();
    pair.near.interface(NEAR).set_offload(Feature::TransmitChecksum, false).unwrap();
    let payload: Vec<u8> = (0..9_500_u32).map(|n| (n % 241) as u8).collect();
    let datagram = |payload: &[u8]| {
        let mut frame = udp_frame([0xff; 6], [10, 0, 0, 2].into(), 9, payload);
        let bytes = (frame.len() - 34) as u16;
        let pseudo = [&frame[26..34], &[0, 17], &bytes.to_be_bytes()].concat();
        frame[40..42].copy_from_slice(&folded_sum(&pseudo).to_be_bytes());
        frame
    };
    let mut aggregate = Pieces::cut(&datagram(&payload), 42, 700);
    let gso = tcp_gso(1_000).map(|gso| Gso { kind: GsoKind::Udp, ..gso });
    let checksum = ChecksumStatus::Partial { start: 34, offset: 6 };
    aggregate.offload = Offload { checksum, gso, header_bytes: 42 };
    aggregate.frames = payload.chunks(1_000).map(datagram).collect();
    let received = through(&pair, 10, |sink| {
        assert!(sink.capabilities().segments_udp);
        sink.transmit([&aggregate].into_iter()).unwrap();
    });
    let came: Vec<u8> = received.iter().flat_map(|frame| frame[42..].to_vec()).collect();
    assert!(came == payload, "{} bytes", came.len());
    assert!(received.iter().all(|frame| frame[36..38] == 9_u16.to_be_bytes()));
}

fn vlan_tag() {
    let pair = Pair::silent();
    let near = pair.near.interface(NEAR);
    near.set_offload(Feature::TransmitSegmentation, false).unwrap();
    near.set_offload(Feature::TransmitChecksum, false).unwrap();
    let vlan = Some(VlanTag { tpid: NonZeroU16::new(0x8100).unwrap(), tci: 0x2007 });
    let tagged = Pieces { vlan, ..aggregate() };
    let run = || {
        let mut source = PacketSource::open(FAR, PacketOptions::default()).unwrap();
        let send = || {
            stay_on_one_core();
            DeviceSink::packet(NEAR).unwrap().transmit([&tagged].into_iter()).unwrap();
        };
        pair.near.run(send).unwrap();
        for frame in receive(&mut source, 10) {
            assert_eq!(frame.vlan, vlan);
            assert_eq!(tcp_sum(frame.bytes()), 0xffff);
        }
    };
    pair.far.run(run).unwrap();
}

/// The sink counts waiting frames: behind an empty token bucket all frames wait, and a large bucket then lets
/// all of them pass.
fn tells_what_waits() {
    let pair = Pair::silent();
    let near = pair.near.interface(NEAR);
    let frames: Vec<_> = (0..100).map(|n| numbered(n, 1_000)).collect();
    let received = through(&pair, 102, |sink| {
        let limit = RateLimit { bytes_per_s: 1, burst_bytes: 1_514, queue_bytes: 1 << 20 };
        near.limit_rate(limit).unwrap();
        sink.transmit(plain(&[numbered(100, 1_514)])).unwrap();
        sink.transmit(plain(&frames)).unwrap();
        let waits = sink.queued_bytes().unwrap();
        assert!((100_000..1_000_000).contains(&waits), "{waits} bytes wait");
        near.limit_rate(RateLimit { bytes_per_s: 1 << 30, burst_bytes: 1 << 20, ..limit }).unwrap();
        sink.transmit(plain(&[numbered(101, 60)])).unwrap();
        let since = std::time::Instant::now();
        while sink.queued_bytes() != Some(0) {
            assert!(since.elapsed() < LONG, "{:?} bytes wait", sink.queued_bytes());
            std::thread::yield_now();
        }
    });
    assert_eq!(number_of(&received[101]), 101, "and in order");
}

/// The queueing discipline of the interface refuses frames when it is full, and does not report when it has
/// space again. The sink keeps the refused frames, and its owner stops reading.
fn keeps_what_a_full_queue_refuses() {
    let pair = Pair::silent();
    let near = pair.near.interface(NEAR);
    let frames: Vec<_> = (0..100).map(|n| numbered(n, 1_000)).collect();
    let received = through(&pair, 100, |sink| {
        let limit = RateLimit { bytes_per_s: 1, burst_bytes: 1_514, queue_bytes: 30_000 };
        near.limit_rate(limit).unwrap();
        sink.transmit(plain(&frames)).unwrap();
        let counters = sink.counters();
        assert!(sink.is_blocked() && counters.packets < 40, "{counters:?}");
        sink.resume().unwrap();
        assert!(sink.is_blocked());
        near.limit_rate(RateLimit { bytes_per_s: 1 << 30, burst_bytes: 1 << 20, ..limit }).unwrap();
        let since = std::time::Instant::now();
        while sink.is_blocked() {
            assert!(since.elapsed() < LONG, "{:?}", sink.counters());
            sink.resume().unwrap();
        }
        assert_eq!((sink.counters().packets, sink.counters().dropped), (100, 0));
    });
    let numbers: Vec<_> = received.iter().map(|frame| number_of(frame)).collect();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
}

/// A frame that is refused although none of the sink's frames waits is not refused because the queue is full.
/// The sink drops it, so that it does not stop the frames after it.
fn drops_what_an_empty_queue_refuses() {
    let pair = Pair::silent();
    let near = pair.near.interface(NEAR);
    let frames: Vec<_> = (0..100).map(|n| numbered(n, 1_000)).collect();
    let run = || {
        let mut sink = DeviceSink::packet(NEAR).unwrap();
        near.limit_rate(RateLimit { bytes_per_s: 1, burst_bytes: 1_514, queue_bytes: 1 }).unwrap();
        sink.transmit(plain(&frames)).unwrap();
        let counters = sink.counters();
        assert_eq!((sink.is_blocked(), counters.packets, counters.dropped), (false, 0, 100));
    };
    pair.near.run(run).unwrap();
}

fn too_long() {
    let pair = Pair::silent();
    let frames = [numbered(0, 100), numbered(1, 3_000), numbered(2, 100)];
    let received = through(&pair, 2, |sink| {
        sink.transmit(plain(&frames)).unwrap();
        assert_eq!((sink.counters().packets, sink.counters().dropped), (2, 1));
    });
    let numbers: Vec<_> = received.iter().map(|frame| number_of(frame)).collect();
    assert_eq!(numbers, [0, 2]);
}

fn down() {
    let pair = Pair::silent();
    let frames: Vec<_> = (0..100).map(|n| numbered(n, 100)).collect();
    let run = || {
        let mut sink = DeviceSink::packet(NEAR).unwrap();
        pair.near.interface(NEAR).down().unwrap();
        sink.transmit(plain(&frames)).unwrap();
        let counters = sink.counters();
        assert_eq!((counters.packets, counters.dropped, counters.dropped_frames), (0, 100, 100));
        assert!(sink.take_notice().unwrap().contains("packet:near0 is down; waiting"));
        assert_eq!(sink.take_notice(), None);
        pair.near.interface(NEAR).up().unwrap();
        sink.transmit(plain(&frames)).unwrap();
        assert_eq!((sink.counters().packets, sink.counters().dropped), (100, 100));
        assert_eq!(sink.take_notice().unwrap(), "packet:near0 is up again");
    };
    pair.near.run(run).unwrap();
}

fn deleted() {
    let pair = Pair::silent();
    let run = || {
        let mut sink = DeviceSink::packet(NEAR).unwrap();
        pair.near.interface(NEAR).delete().unwrap();
        let error = sink.transmit(plain(&[numbered(0, 100)])).unwrap_err();
        assert!(matches!(error, DeviceError::Gone(_)), "{error}");
        assert!(error.to_string().contains("packet:near0"), "{error}");
        assert_eq!(sink.counters().dropped, 1);
    };
    pair.near.run(run).unwrap();
}
