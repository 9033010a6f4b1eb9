//! Every case of the kernel's own self-test, sent by a raw socket on one side of a running rxo and read by a
//! raw socket on the other: compares not only the number of bytes, but every byte, the checksum and the
//! segmentation metadata that the host gets.
//!
//! Packets of a case may arrive in several polls, so the profile holds them for a while, with unchanged
//! rules. A case that a busy machine sent or received too slowly is repeated. After each burst come fragments
//! between the same hosts: they flush held packets, and show that nothing of the burst is still to come.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rxo_device::{FrameSink, FrameSource};
use rxo_driver::{DeviceSink, PacketOptions, PacketSource, wait};
use rxo_frame::{ChecksumStatus, Frame, GsoKind, LinkKind};
use rxo_testbed::{Lab, LabOptions};
use rxo_testkit::Packet;
use rxo_testkit::cases::{self, Case};
use rxo_testkit::naive::{ChecksumField, Reading, Segment, merge, read};

use crate::Test;
use crate::process::Rxo;

pub(crate) const TESTS: &[Test] = &[
    ("the_kernels_self_test_crosses_as_it_must", the_kernels_self_test),
    ("the_same_with_checksums_trusted", with_checksums_trusted),
];

const FLAGS: &str =
    "--nic packet:wire0 --host tap:rxo0 --set max_segments=65535 hold=100ms max_hold=100ms";

/// Longest time to send a burst, well below the hold: a burst that took longer proves nothing.
const AT_ONCE: Duration = Duration::from_millis(30);
/// Attempts to send and receive a case in time.
const TRIES: usize = 50;

/// Longest time until a burst arrives.
const LONG: Duration = Duration::from_secs(60);
/// Fragment offset of the marker fragments after a burst, in units of 8 bytes; no case uses it.
const MARKER_OFFSET: u16 = 1_000;

fn the_kernels_self_test() {
    let cases = cases::all();
    // Most cases have two rows, one for each IP version.
    assert!(cases.len() > 50, "{}", cases.len());
    cross("", &cases);
}

/// Runs all cases except the one about a wrong checksum.
fn with_checksums_trusted() {
    let cases = cases::all().into_iter().filter(|case| !case.name.starts_with("tcp_csum"));
    cross("--checksum trust", &cases.collect::<Vec<_>>());
}

fn cross(flags: &str, cases: &[Case]) {
    let options = LabOptions { partial_checksums: false, ..LabOptions::default() };
    let lab = Lab::through_with(options).unwrap();
    let (rxo, _) = Rxo::start(lab.host(), &format!("{FLAGS} {flags}"));
    let wrong = lab.host().run(|| run(&lab, cases)).unwrap();
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Sends all cases, one after the other. Returns a description of each case that arrived wrongly.
fn run(lab: &Lab, cases: &[Case]) -> Vec<String> {
    let mut host = PacketSource::open("rxo0", PacketOptions::default()).unwrap();
    let mut wrong = Vec::new();
    for case in cases {
        let expected = case.groups();
        let mut arrived = None;
        for _ in 0..TRIES {
            arrived = cross_once(lab, &mut host, case).or(arrived);
            // More packets than expected: rxo may have been scheduled too late.
            if arrived.as_ref().is_some_and(|packets| packets.len() <= expected.len()) {
                break;
            }
        }
        let Some(arrived) = arrived else {
            wrong.push(format!("{}: never sent within {AT_ONCE:?}", case.name));
            continue;
        };
        if let Err(what) = compare(case, &expected, &arrived) {
            wrong.push(format!("{}: {what}", case.name));
        }
    }
    wrong
}

/// Returns the frames that arrive of a case; `None` if the case was not sent in time.
fn cross_once(lab: &Lab, host: &mut PacketSource, case: &Case) -> Option<Vec<Frame<Vec<u8>>>> {
    let (mut took, mut arrived) = (Duration::ZERO, Vec::new());
    for burst in &case.bursts {
        took = took.max(lab.peer().run(|| send(burst)).unwrap());
        arrived.extend(receive(host, markers(burst)));
    }
    (took < AT_ONCE).then_some(arrived)
}

/// Returns a marker fragment for each packet of a burst, between the same hosts.
fn markers(burst: &[Packet]) -> Vec<Vec<u8>> {
    let marker = |packet: &Packet| packet.clone().len(8).fragment(MARKER_OFFSET, true).bytes();
    burst.iter().map(marker).collect()
}

/// Sends the packets and their markers, and returns the time that the packets took.
fn send(packets: &[Packet]) -> Duration {
    // A thread that moves to another core here would reorder its packets on the veth.
    rxo_testbed::pin_to_core(0).unwrap();
    let mut sink = DeviceSink::packet(Lab::PEER_INTERFACE).unwrap();
    let frames: Vec<Frame<Vec<u8>>> = packets.iter().map(Packet::frame).collect();
    let begin = Instant::now();
    sink.transmit(frames.iter().map(Frame::borrowed)).unwrap();
    let took = begin.elapsed();
    let markers = markers(packets);
    let plain = |bytes| Frame::new(bytes, rxo_frame::Instant::ZERO);
    sink.transmit(markers.iter().map(Vec::as_slice).map(plain)).unwrap();
    let counters = sink.counters();
    assert_eq!((counters.packets, counters.dropped), (2 * packets.len() as u64, 0));
    took
}

/// Receives until the last of these markers, and returns the frames of the cases.
fn receive(source: &mut PacketSource, mut markers: Vec<Vec<u8>>) -> Vec<Frame<Vec<u8>>> {
    let (mut arrived, begin) = (Vec::new(), Instant::now());
    while !markers.is_empty() && begin.elapsed() < LONG {
        let mut batch = Vec::new();
        if source.receive(&mut batch, 64).unwrap() == 0 {
            wait::wait_readable(&[source.as_fd()], Some(Duration::from_millis(5))).unwrap();
        }
        for frame in batch.iter().filter(|frame| frame.bytes()[6..12] == CASES_MAC) {
            match markers.iter().position(|marker| marker == frame.bytes()) {
                Some(index) => drop(markers.swap_remove(index)),
                None => arrived.push(owned(frame)),
            }
        }
    }
    arrived
}

/// The source MAC of every test packet; the peer's own stack uses a different one.
const CASES_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn owned<B: AsRef<[u8]>>(frame: &Frame<B>) -> Frame<Vec<u8>> {
    Frame {
        bytes: frame.bytes().to_vec(),
        arrived_at: frame.arrived_at,
        checksum: frame.checksum,
        gso: frame.gso,
        vlan: frame.vlan,
    }
}

fn compare(case: &Case, expected: &[Vec<usize>], arrived: &[Frame<Vec<u8>>]) -> Result<(), String> {
    let lengths: Vec<usize> = arrived.iter().map(|frame| frame.bytes().len()).collect();
    if arrived.len() != expected.len() {
        let must = &case.arrives;
        return Err(format!(
            "{} packets of {lengths:?} bytes; payloads must be {must:?}",
            arrived.len()
        ));
    }
    let sent: Vec<Frame<Vec<u8>>> = case.packets().into_iter().map(Packet::frame).collect();
    for (number, (group, frame)) in expected.iter().zip(arrived).enumerate() {
        let group: Vec<_> = group.iter().map(|&index| &sent[index]).collect();
        let same = match group.as_slice() {
            [single] => is_untouched(single, frame),
            many => is_aggregate(many, frame),
        };
        same.map_err(|what| format!("packet {number} (of {lengths:?} bytes): {what}"))?;
    }
    Ok(())
}

fn is_untouched(sent: &Frame<Vec<u8>>, arrived: &Frame<Vec<u8>>) -> Result<(), String> {
    if arrived.bytes() != sent.bytes() {
        return Err("its bytes have changed".into());
    }
    if arrived.gso.is_some() || arrived.checksum.is_partial() {
        return Err(format!("it says {:?}, {:?}", arrived.checksum, arrived.gso));
    }
    Ok(())
}

fn is_aggregate(sent: &[&Frame<Vec<u8>>], arrived: &Frame<Vec<u8>>) -> Result<(), String> {
    let segments: Vec<Segment> = sent.iter().map(|frame| segment(frame)).collect();
    if arrived.bytes() != merge(sent[0].bytes(), &segments, ChecksumField::Seed) {
        return Err("it is not the merged packet".into());
    }
    let start = segments[0].transport_at as u16;
    if arrived.checksum != (ChecksumStatus::Partial { start, offset: 16 }) {
        return Err(format!("its checksum is said to be {:?}", arrived.checksum));
    }
    let kind = if segments[0].v6 { GsoKind::TcpV6 } else { GsoKind::TcpV4 };
    let size = segments[0].payload.len();
    match arrived.gso {
        Some(gso) if gso.kind == kind && usize::from(gso.size.get()) == size => Ok(()),
        other => Err(format!("it is to be cut as {other:?}, not by {size}")),
    }
}

fn segment(frame: &Frame<Vec<u8>>) -> Segment {
    match read(frame, LinkKind::Ethernet) {
        Reading::Segment(segment) => *segment,
        other => panic!("merged, but {other:?}"),
    }
}
