//! Tests of AF_XDP on a veth, whose driver runs programs and copies frames.

use std::num::NonZeroU16;

use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_driver::wait::{Interest, WaitList};
use rxo_driver::{
    Device, DeviceBuf, DeviceName, DeviceOptions, DeviceSink, PacketOptions, PacketSource, clock,
};
use rxo_frame::{ChecksumStatus, Frame, Offload, VlanTag};
use rxo_testbed::{create_veth, create_veth_with_queues};

use crate::Test;
use crate::network::{
    FAR, LONG, NEAR, Pair, assert_quiet, quiet_namespace, receive as receive_packets,
    stay_on_one_core,
};
use crate::packets::{
    Pieces, TCP_PARTIAL, folded_sum, number_of, numbered, plain, tcp_gso, tcp_header,
};

pub(crate) const TESTS: &[Test] = &[
    ("xdp_frames_of_every_length_arrive_as_they_were", every_length),
    ("xdp_jumbo_frames_arrive_in_several_chunks_and_leave_so", jumbo_frames),
    ("xdp_unfinished_checksums_are_known", unfinished_checksums),
    ("xdp_vlan_tags_are_in_the_frame", vlan_tags),
    ("xdp_sinks_segment_and_complete_checksums", sends_segments),
    ("xdp_a_batch_beyond_the_ring_is_kept_and_goes_out_in_order", large_batch),
    ("xdp_frames_that_are_held_do_not_stop_the_device", held_frames),
    ("xdp_overflow_is_counted", overflow),
    ("xdp_gso_frames_without_metadata_are_counted_and_said", gso_frames),
    ("xdp_follows_an_mtu_that_grows", mtu_that_grows),
    ("xdp_an_interface_taken_down_is_waited_for", taken_down),
    ("xdp_an_interface_that_vanishes_is_said", vanished),
    ("xdp_one_device_has_all_queues", both_queues),
    ("xdp_a_second_program_is_refused", second_program),
    ("xdp_a_queue_that_does_not_exist_is_refused", no_queue),
    ("xdp_a_queue_without_a_socket_goes_to_the_kernel", other_queues),
    ("xdp_an_interface_without_it_uses_the_ring", falls_back),
];

fn open(name: &str, options: PacketOptions) -> Result<Device, DeviceError> {
    let name: DeviceName = name.parse().unwrap();
    Device::open(&name, DeviceOptions { packet: options, ..DeviceOptions::default() })
}

fn open_far() -> Device {
    open("xdp:far0", PacketOptions::default()).unwrap()
}

fn send(pair: &Pair, frames: &[Vec<u8>]) {
    let send = || {
        stay_on_one_core();
        DeviceSink::packet(NEAR).unwrap().transmit(plain(frames)).unwrap();
    };
    pair.near.run(send).unwrap();
}

/// Waits until the device has a frame.
fn await_readable(device: &Device) {
    wait(device, LONG);
}

/// Waits until the device may have a frame, at most for `time`.
fn wait(device: &Device, time: std::time::Duration) {
    let mut list = WaitList::new();
    list.add(Some(&device.source), Interest::Readable);
    list.wait(Some(time)).unwrap();
}

/// Receives exactly `count` frames.
fn receive(device: &mut Device, count: usize) -> Vec<Frame<DeviceBuf>> {
    let (mut frames, ends_at) = (Vec::new(), clock::now() + LONG);
    while frames.len() < count {
        let left = ends_at.since(clock::now());
        assert!(!left.is_zero(), "there are {} of {count} frames", frames.len());
        if device.source.receive(&mut frames, 64).unwrap() == 0 {
            wait(device, left);
        }
    }
    assert_eq!(frames.len(), count);
    frames
}

/// Creates a frame whose bytes all depend on its number.
fn filled(number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = numbered(number, bytes);
    for (at, byte) in frame.iter_mut().enumerate().skip(18) {
        *byte = (at as u32).wrapping_mul(number | 1) as u8;
    }
    frame
}

fn bytes_of(frames: &[Frame<DeviceBuf>]) -> Vec<Vec<u8>> {
    frames.iter().map(|frame| frame.bytes().to_vec()).collect()
}

fn every_length() {
    let pair = Pair::silent();
    let run = || {
        let mut device = open_far();
        assert_eq!(device.source.access(), Some("AF_XDP, copy mode"));
        for round in 0..20 {
            let frames: Vec<_> = (0..500)
                .map(|n| filled(n + round, 60 + (n + round) as usize * 7 % 1_455))
                .collect();
            send(&pair, &frames);
            let received = receive(&mut device, 500);
            assert!(bytes_of(&received) == frames, "round {round}");
            assert!(received.iter().all(|it| it.checksum == ChecksumStatus::Unknown));
        }
        let counters = device.source.counters();
        assert_eq!((counters.frames, counters.ring_drops, counters.invalid), (10_000, 0, 0));
    };
    pair.far.run(run).unwrap();
}

fn jumbo_frames() {
    let pair = Pair::silent();
    pair.near.interface(NEAR).set_mtu(9_000).unwrap();
    pair.far.interface(FAR).set_mtu(9_000).unwrap();
    let lengths = [60, 3_840, 3_841, 4_096, 4_097, 7_680, 7_681, 9_014];
    let frames: Vec<_> = (0..400).map(|n| filled(n, lengths[n as usize % 8])).collect();
    let run = || {
        let mut device = open_far();
        send(&pair, &frames);
        assert!(bytes_of(&receive(&mut device, 400)) == frames);
        let open_near = || PacketSource::open(NEAR, PacketOptions::default()).unwrap();
        let mut near = pair.near.run(open_near).unwrap();
        stay_on_one_core();
        device.sink.transmit(plain(&frames)).unwrap();
        assert!(bytes_of(&receive_packets(&mut near, 400)) == frames);
    };
    pair.far.run(run).unwrap();
}

fn unfinished_checksums() {
    let pair = Pair::silent();
    let bytes = [tcp_header(101), vec![0xa5; 101]].concat();
    let mut partial = Pieces::cut(&bytes, 54, 13);
    partial.offload.checksum = TCP_PARTIAL;
    let run = || {
        let mut device = open_far();
        let send = || {
            stay_on_one_core();
            DeviceSink::packet(NEAR).unwrap().transmit([&partial].into_iter()).unwrap();
        };
        pair.near.run(send).unwrap();
        let frame = receive(&mut device, 1).remove(0);
        assert_eq!((frame.checksum, frame.bytes()), (TCP_PARTIAL, &bytes[..]));
        let line = device.sink.take_notice().unwrap();
        assert!(line.contains("xdp:far0") && line.contains("unfinished checksums"), "{line}");
        pair.near
            .interface(NEAR)
            .set_offload(rxo_testbed::Offload::TransmitChecksum, false)
            .unwrap();
        pair.near.run(send).unwrap();
        let frame = receive(&mut device, 1).remove(0);
        assert_eq!((frame.checksum, tcp_sum(frame.bytes())), (ChecksumStatus::Unknown, 0xffff));
        assert_eq!(device.sink.take_notice(), None, "said once");
    };
    pair.far.run(run).unwrap();
}

/// VLAN tags are missing from frames on a veth: it keeps a tag beside the frame, where an AF_XDP socket does
/// not see it.
fn vlan_tags() {
    let pair = Pair::silent();
    let vlan = Some(VlanTag { tpid: NonZeroU16::new(0x88a8).unwrap(), tci: 0x2007 });
    let frame = filled(7, 300);
    let tagged = Pieces { vlan, ..Pieces::cut(&frame, 300, 1) };
    let run = || {
        let mut device = open_far();
        for _ in 0..3 {
            let send = || {
                stay_on_one_core();
                let mut sink = DeviceSink::packet(NEAR).unwrap();
                sink.transmit([&tagged].into_iter()).unwrap();
                sink.transmit(plain(std::slice::from_ref(&frame))).unwrap();
            };
            pair.near.run(send).unwrap();
            let received = bytes_of(&receive(&mut device, 2));
            let expected = [&frame[..12], &[0x88, 0xa8, 0x20, 7], &frame[12..]].concat();
            assert!(received == [expected, frame.clone()], "{received:x?}");
        }
    };
    pair.far.run(run).unwrap();
}

/// Returns the ones' complement sum over the pseudo-header and the segment: all ones when the checksum is right.
fn tcp_sum(frame: &[u8]) -> u16 {
    let segment = &frame[34..];
    let pseudo = [&frame[26..34], &[0, 6], &(segment.len() as u16).to_be_bytes()].concat();
    folded_sum(&[&pseudo, segment].concat())
}

fn sends_segments() {
    let pair = Pair::silent();
    let payload: Vec<u8> = (0..60_000_u32).map(|n| (n % 241) as u8).collect();
    let bytes = [tcp_header(payload.len()), payload.clone()].concat();
    let mut large = Pieces::cut(&bytes, 54, 700);
    large.offload = Offload { checksum: TCP_PARTIAL, gso: tcp_gso(1_000), header_bytes: 54 };
    let run = || {
        let mut device = open_far();
        let open_near = || PacketSource::open(NEAR, PacketOptions::default()).unwrap();
        let mut near = pair.near.run(open_near).unwrap();
        stay_on_one_core();
        for _ in 0..10 {
            device.sink.transmit([&large].into_iter()).unwrap();
            let received = receive_packets(&mut near, 60);
            let came: Vec<u8> = received.iter().flat_map(|it| it.bytes()[54..].to_vec()).collect();
            assert!(came == payload);
            assert!(received.iter().all(|it| tcp_sum(it.bytes()) == 0xffff));
        }
        device.sink.transmit(plain(&[numbered(0, 1_600)])).unwrap();
        assert_eq!(device.sink.counters().dropped, 1, "beyond the MTU");
    };
    pair.far.run(run).unwrap();
}

fn large_batch() {
    let pair = Pair::silent();
    let frames: Vec<_> = (0..8_000).map(|n| filled(n, 300)).collect();
    let run = || {
        let mut device = open_far();
        let options = PacketOptions { ring_slots: 16_384, ..PacketOptions::default() };
        let mut near = pair.near.run(|| PacketSource::open(NEAR, options).unwrap()).unwrap();
        stay_on_one_core();
        device.sink.transmit(plain(&frames)).unwrap();
        while device.sink.is_blocked() {
            device.sink.resume().unwrap();
        }
        assert!(bytes_of(&receive_packets(&mut near, 8_000)) == frames);
        let counters = device.sink.counters();
        assert_eq!((counters.packets, counters.dropped), (8_000, 0));
    };
    pair.far.run(run).unwrap();
}

fn held_frames() {
    let pair = Pair::silent();
    let run = || {
        let small = PacketOptions { ring_slots: 64, ..PacketOptions::default() };
        let mut device = open("xdp:far0", small).unwrap();
        device.source.expect_holds();
        let frames: Vec<_> = (0..1_000).map(|n| filled(n, 200)).collect();
        let mut held = Vec::new();
        for part in frames.chunks(8) {
            send(&pair, part);
            held.extend(receive(&mut device, 8));
        }
        assert!(bytes_of(&held) == frames);
        assert_eq!(device.source.counters().ring_drops, 0);
        drop(device);
        assert!(bytes_of(&held) == frames, "buffers outlive the source");
    };
    pair.far.run(run).unwrap();
}

fn overflow() {
    let pair = Pair::silent();
    let run = || {
        let small = PacketOptions { ring_slots: 64, ..PacketOptions::default() };
        let mut device = open("xdp:far0", small).unwrap();
        let numbers: Vec<_> = (0..200).map(|n| numbered(n, 100)).collect();
        send(&pair, &numbers);
        let ends_at = clock::now() + LONG;
        while device.source.counters().ring_drops < 136 && clock::now() < ends_at {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(device.source.counters().ring_drops, 136);
        assert!(bytes_of(&receive(&mut device, 64)) == numbers[..64]);
        // The next call gives the kernel the chunks that were dropped.
        assert_eq!(device.source.receive(&mut Vec::new(), 64).unwrap(), 0);
        send(&pair, &numbers[..60]);
        assert!(bytes_of(&receive(&mut device, 60)) == numbers[..60], "it goes on");
    };
    pair.far.run(run).unwrap();
}

/// The near end is larger than the far one, so that a frame may be longer than the MTU of the far one.
fn gso_frames() {
    let pair = Pair::silent();
    pair.near.interface(NEAR).set_mtu(3_400).unwrap();
    let far = pair.far.interface(FAR);
    let run = || {
        let mut device = open_far();
        far.set_mtu(3_400).unwrap();
        send(&pair, &[filled(0, 3_400)]);
        await_readable(&device);
        far.set_mtu(3_000).unwrap();
        assert_eq!(device.source.receive(&mut Vec::new(), 64).unwrap(), 0);
        assert_eq!(device.source.counters().invalid, 1);
        let line = device.sink.take_notice().unwrap();
        assert!(line.contains("GSO frames arrive without"), "{line}");
    };
    pair.far.run(run).unwrap();
}

fn mtu_that_grows() {
    let pair = Pair::silent();
    let run = || {
        let mut device = open_far();
        pair.far.interface(FAR).set_mtu(3_000).unwrap();
        pair.near.interface(NEAR).set_mtu(3_000).unwrap();
        let frames: Vec<_> = (0..20).map(|n| filled(n, 1_000 + n as usize * 100)).collect();
        send(&pair, &frames);
        assert!(bytes_of(&receive(&mut device, 20)) == frames);
        let open_near = || PacketSource::open(NEAR, PacketOptions::default()).unwrap();
        let mut near = pair.near.run(open_near).unwrap();
        device.sink.transmit(plain(&frames)).unwrap();
        assert!(bytes_of(&receive_packets(&mut near, 20)) == frames);
    };
    pair.far.run(run).unwrap();
}

fn taken_down() {
    let pair = Pair::silent();
    let run = || {
        let mut device = open_far();
        let far = pair.far.interface(FAR);
        far.down().unwrap();
        assert_eq!(device.source.receive(&mut Vec::new(), 64).unwrap(), 0);
        device.sink.transmit(plain(&[numbered(0, 100)])).unwrap();
        device.sink.transmit(plain(&[numbered(1, 100)])).unwrap();
        assert!(!device.sink.is_blocked());
        let line = device.sink.take_notice().unwrap();
        assert!(line.contains("xdp:far0 is down"), "{line}");
        far.up().unwrap();
        pair.near.interface(NEAR).await_wire().unwrap();
        send(&pair, &[numbered(2, 100)]);
        assert_eq!(number_of(receive(&mut device, 1)[0].bytes()), 2);
        let open_near = || PacketSource::open(NEAR, PacketOptions::default()).unwrap();
        let mut near = pair.near.run(open_near).unwrap();
        device.sink.transmit(plain(&[numbered(3, 100)])).unwrap();
        let arrived = receive_packets(&mut near, 2);
        let numbers: Vec<_> = arrived.iter().map(|it| number_of(it.bytes())).collect();
        assert_eq!(numbers, [0, 3], "one waited in the ring, the other was dropped");
        assert_eq!(device.sink.counters().dropped, 1);
    };
    pair.far.run(run).unwrap();
}

fn vanished() {
    let pair = Pair::silent();
    let run = || {
        let mut device = open_far();
        pair.near.interface(NEAR).delete().unwrap();
        for _ in 0..2 {
            let error = device.source.receive(&mut Vec::new(), 64).unwrap_err();
            assert!(matches!(error, DeviceError::Gone(_)), "{error}");
            let sent = device.sink.transmit(plain(&[numbered(0, 100)])).unwrap_err();
            assert!(sent.to_string().contains("xdp:far0 has gone away"), "{sent}");
        }
        create_veth(&pair.far.interface(FAR), &pair.near.interface(NEAR)).unwrap();
        assert!(device.source.receive(&mut Vec::new(), 64).is_err(), "another interface");
    };
    pair.far.run(run).unwrap();
}

/// Two networks joined by a veth with two queues.
fn with_two_queues() -> Pair {
    let pair = Pair { near: quiet_namespace("near"), far: quiet_namespace("far") };
    let (near, far) = (pair.near.interface(NEAR), pair.far.interface(FAR));
    create_veth_with_queues(&near, &far, 2).unwrap();
    near.up().unwrap();
    far.up().unwrap();
    near.await_wire().unwrap();
    pair
}

/// Sends frames in one queue of the near end, which arrive in the same queue of the far end.
fn send_in(pair: &Pair, queue: u32, frames: &[Vec<u8>]) {
    let send = || {
        stay_on_one_core();
        let mut near = open(&format!("xdp:near0:{queue}"), PacketOptions::default()).unwrap();
        near.sink.transmit(plain(frames)).unwrap();
    };
    pair.near.run(send).unwrap();
}

fn both_queues() {
    let pair = with_two_queues();
    let run = || {
        let mut device = open_far();
        for round in 0..5 {
            send_in(&pair, round % 2, &[filled(round, 100), filled(round + 100, 1_000)]);
            let received = bytes_of(&receive(&mut device, 2));
            assert_eq!(received, [filled(round, 100), filled(round + 100, 1_000)]);
        }
    };
    pair.far.run(run).unwrap();
}

/// Frames of a queue that rxo does not use go to the kernel, where a packet socket sees them.
fn other_queues() {
    let pair = with_two_queues();
    let run = || {
        let mut device = open("xdp:far0:1", PacketOptions::default()).unwrap();
        let mut ring = PacketSource::open(FAR, PacketOptions::default()).unwrap();
        send_in(&pair, 0, &[filled(0, 100)]);
        send_in(&pair, 1, &[filled(1, 100)]);
        assert_eq!(bytes_of(&receive(&mut device, 1)), [filled(1, 100)]);
        assert_eq!(bytes_of(&receive_packets(&mut ring, 1)), [filled(0, 100)]);
        assert_quiet(&mut ring);
    };
    pair.far.run(run).unwrap();
}

fn second_program() {
    let pair = with_two_queues();
    let run = || {
        let of = |name: &str| open(name, PacketOptions::default()).map(drop);
        let first = open("xdp:far0:1", PacketOptions::default()).unwrap();
        let refused = of("xdp:far0:1").unwrap_err().to_string();
        assert!(refused.contains("another program has queue 1 of far0"), "{refused}");
        let refused = of("xdp:far0:0").unwrap_err().to_string();
        assert!(refused.contains("far0 has an XDP program; end what has put it"), "{refused}");
        // The program is attached as long as source or sink exists.
        let Device { source, sink } = first;
        drop(source);
        assert!(of("xdp:far0:0").is_err());
        drop(sink);
        of("xdp:far0:0").unwrap();
    };
    pair.far.run(run).unwrap();
}

fn no_queue() {
    let pair = Pair::silent();
    let run = || {
        let error = open("xdp:far0:1", PacketOptions::default()).map(drop).unwrap_err();
        assert!(matches!(error, DeviceError::Usage(_)), "{error}");
        let line = "xdp:far0:1: far0 has no queue 1; it receives in 1: give one from 0 to 0";
        assert_eq!(error.to_string(), line);
        pair.far.interface(FAR).down().unwrap();
        let down = open("xdp:far0", PacketOptions::default()).map(drop).unwrap_err().to_string();
        assert!(down.contains("ip link set far0 up"), "{down}");
        let missing = open("xdp:no0", PacketOptions::default()).map(drop).unwrap_err().to_string();
        assert!(missing.contains("xdp:no0: there is no interface `no0`"), "{missing}");
    };
    pair.far.run(run).unwrap();
}

/// A bridge runs no XDP programs.
fn falls_back() {
    let far = quiet_namespace("far");
    far.interface("br0").create_bridge().unwrap();
    far.interface("br0").up().unwrap();
    let run = || {
        let mut device = open("xdp:br0", PacketOptions::default()).unwrap();
        assert_eq!(device.source.access(), None);
        let line = device.sink.take_notice().unwrap();
        let expected = "xdp:br0 uses the packet ring instead of AF_XDP: the driver of br0 runs no XDP programs";
        assert_eq!(line, expected);
        let error = open("xdp:br0:0", PacketOptions::default()).map(drop).unwrap_err().to_string();
        assert!(error.contains("runs no XDP programs; or use packet:br0"), "{error}");
    };
    far.run(run).unwrap();
}
