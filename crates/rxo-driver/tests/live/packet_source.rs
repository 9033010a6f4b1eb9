//! Tests of receiving from the ring of an interface.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU16;
use std::thread;

use rxo_device::{FrameSink, FrameSource};
use rxo_driver::{DeviceBuf, DeviceSink, PacketOptions, PacketSource, clock};
use rxo_frame::{ChecksumStatus, Frame, GsoKind, Offload, VlanTag};
use rxo_testbed::Offload as Feature;

use crate::Test;
use crate::network::{
    FAR, FAR_ADDRESS, NEAR, Pair, assert_quiet, await_drops, receive, receive_until,
    stay_on_one_core,
};
use crate::packets::{Pieces, TCP_PARTIAL, number_of, numbered, plain, tcp_gso, tcp_header};

pub(crate) const TESTS: &[Test] = &[
    ("partial_checksums_arrive_as_partial", partial_checksums),
    ("complete_checksums_arrive_as_not_partial", complete_checksums),
    ("super_packets_arrive_whole_and_with_gso", super_packets),
    ("packets_over_64_kib_arrive_whole", giant_packets),
    ("the_outer_vlan_tag_arrives_beside_the_frame", vlan_tag),
    ("frames_too_large_for_a_slot_keep_their_place", large_frames_keep_their_place),
    ("large_frames_wait_while_there_is_no_buffer", large_frames_wait),
    ("overflow_is_counted", overflow),
    ("what_arrives_is_what_is_given_and_what_is_lost", arrivals_are_known),
    ("slots_come_back_in_any_order", slots_in_any_order),
    ("a_held_slot_is_not_given_twice", held_slot),
    ("buffers_outlive_the_source", buffers_outlive_the_source),
    ("own_frames_are_not_received", own_frames),
    ("arrival_is_between_sending_and_receiving", arrival),
];

pub(crate) fn open_far() -> PacketSource {
    PacketSource::open(FAR, PacketOptions::default()).unwrap()
}

/// The source counts the frames that arrived even if the ring overflows, and reports when the interface
/// coalesces and therefore gives fewer frames.
fn arrivals_are_known() {
    let pair = Pair::silent();
    let run = || {
        send(&pair, &(0..10).map(|n| numbered(n, 100)).collect::<Vec<_>>());
        let options = PacketOptions { ring_slots: 64, ..PacketOptions::default() };
        let mut source = PacketSource::open(FAR, options).unwrap();
        assert_eq!(source.arrived(), Some(0), "before it was opened");
        send(&pair, &(0..200).map(|n| numbered(n, 100)).collect::<Vec<_>>());
        await_drops(&mut source, 136);
        assert_eq!(source.arrived(), Some(200));
        assert_eq!(receive(&mut source, 64).len() as u64 + source.counters().ring_drops, 200);
        assert!(!source.gives_fewer());
        pair.far.interface(FAR).set_offload(Feature::GenericReceive, true).unwrap();
        assert!(source.gives_fewer());
    };
    pair.far.run(run).unwrap();
}

/// Sends frames from the near end, in order.
pub(crate) fn send(pair: &Pair, frames: &[Vec<u8>]) {
    let send = || {
        stay_on_one_core();
        DeviceSink::packet(NEAR).unwrap().transmit(plain(frames)).unwrap();
    };
    pair.near.run(send).unwrap();
}

pub(crate) fn numbers(frames: &[Frame<DeviceBuf>]) -> Vec<u32> {
    frames.iter().map(|frame| number_of(frame.bytes())).collect()
}

/// Runs a TCP transfer of `bytes` bytes from near to far; returns its frames up to the last data.
fn transfer(pair: &Pair, bytes: usize) -> Vec<Frame<DeviceBuf>> {
    let mut source = open_far();
    carry(pair, bytes);
    receive_until(&mut source, |frames| {
        frames.iter().map(|frame| tcp_payload(frame.bytes()).len()).sum::<usize>() >= bytes
    })
}

/// Runs a TCP transfer of `bytes` bytes from near to far.
fn carry(pair: &Pair, bytes: usize) {
    let listener = TcpListener::bind((FAR_ADDRESS, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let send = || TcpStream::connect(address)?.write_all(&pattern(bytes));
            pair.near.run(send).unwrap().unwrap();
        });
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert!(received == pattern(bytes));
    });
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n % 251) as u8).collect()
}

/// Returns the payload of a TCP segment over IPv4, and an empty slice for any other frame.
fn tcp_payload(frame: &[u8]) -> &[u8] {
    if frame[12..14] != [8, 0] || frame[23] != 6 {
        return &[];
    }
    let total = match usize::from(u16::from_be_bytes([frame[16], frame[17]])) {
        // The packet is longer than its length field can express.
        0 => frame.len() - 14,
        total => total,
    };
    let header = 34 + usize::from(frame[46] >> 4) * 4;
    &frame[header..14 + total]
}

/// Returns the byte stream in the order of sequence numbers: a sender on two cores may send segments out of
/// order, and some of them twice.
fn stream(frames: &[Frame<DeviceBuf>], bytes: usize) -> Vec<u8> {
    let segments = frames.iter().map(|frame| (frame.bytes(), tcp_payload(frame.bytes())));
    let segments: Vec<_> = segments.filter(|(_, payload)| !payload.is_empty()).collect();
    let seq = |frame: &[u8]| u32::from_be_bytes([frame[38], frame[39], frame[40], frame[41]]);
    let before = |a: u32, b: u32| (a.wrapping_sub(b) as i32).cmp(&0);
    let first = segments.iter().map(|(frame, _)| seq(frame)).min_by(|a, b| before(*a, *b)).unwrap();
    let mut stream = vec![0; bytes];
    for (frame, payload) in segments {
        let at = seq(frame).wrapping_sub(first) as usize;
        stream[at..at + payload.len()].copy_from_slice(payload);
    }
    stream
}

fn partial_checksums() {
    let pair = Pair::addressed();
    // A late ACK may belong to no socket, and Linux completes the checksums of such ACKs.
    let is_of_socket = |frame: &Frame<DeviceBuf>| {
        let bytes = frame.bytes();
        bytes.get(47).is_some_and(|flags| flags & SYN_OR_FIN != 0) || bytes.len() > 200
    };
    let of_sockets = || transfer(&pair, 1_000).into_iter().filter(is_of_socket).collect();
    let frames = pair.far.run(|| statuses(of_sockets())).unwrap();
    assert!(frames.len() >= 2);
    assert!(frames.iter().all(|&status| status == TCP_PARTIAL), "{frames:?}");
}

const SYN_OR_FIN: u8 = 0b11;

fn complete_checksums() {
    let pair = Pair::addressed();
    pair.near.interface(NEAR).set_offload(Feature::TransmitChecksum, false).unwrap();
    let frames = pair.far.run(|| statuses(transfer(&pair, 1_000))).unwrap();
    assert!(frames.len() >= 3);
    assert!(frames.iter().all(|status| !status.is_partial()), "{frames:?}");
}

/// Returns the checksum status of every TCP segment.
fn statuses(frames: Vec<Frame<DeviceBuf>>) -> Vec<ChecksumStatus> {
    let is_tcp = |frame: &Frame<DeviceBuf>| frame.bytes()[12..14] == [8, 0];
    frames.into_iter().filter(is_tcp).map(|frame| frame.checksum).collect()
}

fn super_packets() {
    let pair = Pair::addressed();
    let bytes = 2_000_000;
    pair.far
        .run(|| {
            let frames = transfer(&pair, bytes);
            let large: Vec<_> = frames.iter().filter(|frame| frame.bytes().len() > 1514).collect();
            assert!(large.len() > 10, "{} super-packets", large.len());
            for frame in &large {
                let gso = frame.gso.unwrap();
                assert_eq!((gso.kind, gso.size.get()), (GsoKind::TcpV4, 1448));
                assert!(frame.checksum.is_partial());
            }
            assert!(stream(&frames, bytes) == pattern(bytes), "every byte in its place");
        })
        .unwrap();
}

/// With BIG TCP, where an administrator has raised the limit, a packet can be longer than its own length
/// field can express.
fn giant_packets() {
    let pair = Pair::addressed();
    pair.near.interface(NEAR).set_large_send_bytes(200_000).unwrap();
    let bytes = 8_000_000;
    let run = || {
        let mut source = open_far();
        carry(&pair, bytes);
        // The ring has few buffers of that size: each batch is returned to the ring before the next.
        let (mut seen, mut largest) = (0, 0);
        while seen < bytes {
            let frames = receive_until(&mut source, |frames| !frames.is_empty());
            seen += frames.iter().map(|frame| tcp_payload(frame.bytes()).len()).sum::<usize>();
            largest =
                frames.iter().map(|frame| frame.bytes().len()).max().max(Some(largest)).unwrap();
        }
        assert!(largest > 66_000, "the largest has {largest} bytes");
        assert_eq!(source.counters().truncated, 0);
    };
    pair.far.run(run).unwrap();
}

fn vlan_tag() {
    let pair = Pair::silent();
    let mut frame = numbered(0, 100);
    let tags = [0x88, 0xa8, 0x20, 0x07, 0x81, 0x00, 0x00, 0x09];
    frame.splice(12..12, tags);
    pair.far
        .run(|| {
            let mut source = open_far();
            send(&pair, &[frame]);
            let frames = receive(&mut source, 1);
            let tpid = NonZeroU16::new(0x88a8).unwrap();
            assert_eq!(frames[0].vlan, Some(VlanTag { tpid, tci: 0x2007 }));
            assert_eq!(frames[0].bytes()[12..16], tags[4..], "the inner tag stays in the bytes");
            assert_eq!(frames[0].bytes().len(), 104);
        })
        .unwrap();
}

/// Creates a segment of 20 × 1,000 bytes.
fn large_packet() -> Pieces {
    let mut bytes = tcp_header(20_000);
    bytes.extend(pattern(20_000));
    let mut large = Pieces::cut(&bytes, 54, 1_000);
    large.offload = Offload { checksum: TCP_PARTIAL, gso: tcp_gso(1_000), header_bytes: 54 };
    large
}

/// Sends small and large frames in turn, the small ones numbered.
fn send_alternately(pair: &Pair, rounds: u32) {
    let large = large_packet();
    pair.near
        .run(|| {
            stay_on_one_core();
            let mut sink = DeviceSink::packet(NEAR).unwrap();
            for number in 0..rounds {
                let small = Pieces::cut(&numbered(number, 60), 14, 100);
                sink.transmit([&small, &large].into_iter()).unwrap();
            }
            assert_eq!(sink.counters().dropped, 0);
        })
        .unwrap();
}

fn check_alternate(frames: &[Frame<DeviceBuf>]) {
    let expected: Vec<u8> = large_packet().slices[1..].concat();
    for (n, pair) in frames.chunks(2).enumerate() {
        assert_eq!(number_of(pair[0].bytes()), n as u32);
        assert_eq!(pair[1].gso, tcp_gso(1_000));
        assert_eq!(pair[1].checksum, TCP_PARTIAL);
        assert!(tcp_payload(pair[1].bytes()) == expected);
    }
}

fn large_frames_keep_their_place() {
    let pair = Pair::silent();
    pair.far
        .run(|| {
            let mut source = open_far();
            send_alternately(&pair, 50);
            check_alternate(&receive(&mut source, 100));
            assert_eq!(source.counters().truncated, 0);
        })
        .unwrap();
}

fn large_frames_wait() {
    let pair = Pair::silent();
    pair.far
        .run(|| {
            let options = PacketOptions { large_buffers: 2, ..PacketOptions::default() };
            let mut source = PacketSource::open(FAR, options).unwrap();
            send_alternately(&pair, 5);
            // The batch has small, large, small, large, small; the next frame is large and must wait.
            let mut frames = receive(&mut source, 5);
            assert_eq!(source.receive(&mut frames, 64).unwrap(), 0);
            check_alternate(&frames[..4]);
            frames.clear();
            receive(&mut source, 4);
            assert_eq!(source.counters().truncated, 0);
        })
        .unwrap();
}

fn overflow() {
    let pair = Pair::silent();
    let frames: Vec<_> = (0..300).map(|n| numbered(n, 100)).collect();
    pair.far
        .run(|| {
            let options = PacketOptions { ring_slots: 64, ..PacketOptions::default() };
            let mut source = PacketSource::open(FAR, options).unwrap();
            send(&pair, &frames);
            let received = receive(&mut source, 64);
            assert_eq!(numbers(&received), (0..64).collect::<Vec<_>>());
            await_drops(&mut source, 236);
            drop(received);
            assert_quiet(&mut source);
            assert_eq!(source.counters().ring_drops, 236, "reading does not reset");
            assert_eq!((source.counters().frames, source.counters().bytes), (64, 6_400));
        })
        .unwrap();
}

fn slots_in_any_order() {
    let pair = Pair::silent();
    pair.far
        .run(|| {
            let options = PacketOptions { ring_slots: 64, ..PacketOptions::default() };
            let mut source = PacketSource::open(FAR, options).unwrap();
            for lap in 0..5 {
                let frames: Vec<_> = (0..64).map(|n| numbered(lap * 64 + n, 100)).collect();
                send(&pair, &frames);
                let mut received = receive(&mut source, 64);
                assert_eq!(numbers(&received), (lap * 64..lap * 64 + 64).collect::<Vec<_>>());
                while !received.is_empty() {
                    let middle = received.len() / 2;
                    received.swap_remove(middle);
                }
            }
            assert_eq!(source.counters().ring_drops, 0);
        })
        .unwrap();
}

fn held_slot() {
    let pair = Pair::silent();
    let frames = |from: u32, count: u32| (from..from + count).map(|n| numbered(n, 100)).collect();
    pair.far
        .run(|| {
            let options = PacketOptions { ring_slots: 64, ..PacketOptions::default() };
            let mut source = PacketSource::open(FAR, options).unwrap();
            let send = |frames: Vec<_>| send(&pair, &frames);
            send(frames(0, 64));
            let mut received = receive(&mut source, 64);
            let held = received.remove(10);
            drop(received);
            send(frames(64, 64));
            let received = receive(&mut source, 10);
            assert_eq!(numbers(&received), (64..74).collect::<Vec<_>>());
            assert_eq!(source.receive(&mut Vec::new(), 64).unwrap(), 0, "the held one stops it");
            assert_eq!(number_of(held.bytes()), 10);
            await_drops(&mut source, 54);
            drop((received, held));
            send(frames(128, 1));
            assert_eq!(numbers(&receive(&mut source, 1)), [128]);
            assert_eq!(source.counters().ring_drops, 54);
        })
        .unwrap();
}

fn buffers_outlive_the_source() {
    let pair = Pair::silent();
    pair.far
        .run(|| {
            let mut source = open_far();
            send_alternately(&pair, 2);
            let frames = receive(&mut source, 4);
            drop(source);
            check_alternate(&frames);
        })
        .unwrap();
}

fn own_frames() {
    let pair = Pair::silent();
    let frames = [numbered(0, 100), numbered(1, 100)];
    pair.far
        .run(|| {
            let mut source = open_far();
            DeviceSink::packet(FAR).unwrap().transmit(plain(&frames)).unwrap();
            assert_quiet(&mut source);
        })
        .unwrap();
}

fn arrival() {
    let pair = Pair::silent();
    pair.far
        .run(|| {
            let mut source = open_far();
            let before = clock::now();
            send(&pair, &[numbered(0, 100), numbered(1, 100)]);
            let frames = receive(&mut source, 2);
            let after = clock::now();
            // The two clocks are read one after the other, and another process may run between the two
            // readings.
            let slack = std::time::Duration::from_secs(1);
            assert!(frames[0].arrived_at + slack >= before);
            assert!(frames[0].arrived_at <= frames[1].arrived_at);
            assert!(frames[1].arrived_at <= after + slack);
        })
        .unwrap();
}
