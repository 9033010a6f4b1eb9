//! Congestion marks that a host counts behind a TAP, compared with the kernel's own path.
//!
//! The host's counter is `InCEPkts` of its IP layer: a packet that the kernel coalesced counts once per
//! segment, a packet that arrives coalesced counts once. A host with accurate ECN (RFC 9768) counts marks for
//! its peer the same way (`tcpi_received_ce`), but needs a kernel that negotiates it (`tcp_ecn=3`).

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rxo_device::FrameSink;
use rxo_driver::DeviceSink;
use rxo_frame::Frame;
use rxo_testbed::{KernelGro, Lab, LabOptions};
use rxo_testkit::seg;
use serde_json::Value;

use crate::Test;
use crate::process::Rxo;
use crate::traffic::totals;

pub(crate) const TESTS: &[Test] =
    &[("a_host_behind_a_tap_counts_every_ce_mark", a_host_behind_a_tap_counts_every_ce_mark)];

const CE: u8 = 3;
const FLOWS: u32 = 32;
const SEGMENTS_EACH: u32 = 8;
const MARKED: u64 = (FLOWS * SEGMENTS_EACH) as u64;
/// Longest time until the host has received everything.
const LONG: Duration = Duration::from_secs(60);
/// Longer than any hold: packets that have not arrived by then will not arrive.
const QUIET: Duration = Duration::from_millis(200);
/// A hold long enough to merge all mergeable packets.
const FLAGS: &str = "--nic packet:wire0 --host tap:rxo0 --hold 5ms";

fn a_host_behind_a_tap_counts_every_ce_mark() {
    for is_v6 in [false, true] {
        let kernel = Lab::direct_with(KernelGro::On, options()).unwrap();
        let marks = counted(&kernel, Lab::HOST_INTERFACE, is_v6, Expected::All);
        assert_eq!(marks, MARKED, "by the kernel alone");
        let (marks, totals) = through_rxo("", is_v6, Expected::All);
        assert_eq!(marks, MARKED, "{totals}");
        assert_eq!(totals["bypass"]["ce_mark"], MARKED, "{totals}");
        // Merged segments lose their separate marks, so the host counts fewer.
        let (marks, totals) = through_rxo("--set ce=equal", is_v6, Expected::Some);
        assert!(marks < MARKED / 2, "{marks} of {MARKED} marks: {totals}");
    }
}

fn options() -> LabOptions {
    LabOptions { partial_checksums: false, ..LabOptions::default() }
}

/// Returns the marks that a host counts behind rxo with these flags, and rxo's totals.
fn through_rxo(flags: &str, is_v6: bool, expected: Expected) -> (u64, Value) {
    let lab = Lab::through_with(options()).unwrap();
    let (rxo, _) = Rxo::start(lab.host(), &format!("{FLAGS} {flags}"));
    lab.attach_host("rxo0").unwrap();
    (counted(&lab, "rxo0", is_v6, expected), totals(rxo))
}

/// The number of marks that the host must count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// All marks; the test waits for them.
    All,
    /// Fewer marks than were sent; the test counts until no more arrive.
    Some,
}

/// Sends marked segments, and returns the marks that the host counted once all arrived.
fn counted(lab: &Lab, interface: &str, is_v6: bool, expected: Expected) -> u64 {
    let mac = lab.host().interface(interface).mac().unwrap();
    wait_until_heard(lab);
    let before = lab.host().stack_counters().unwrap();
    lab.peer().run(|| send(mac, is_v6, FLOWS * SEGMENTS_EACH)).unwrap();
    let begin = Instant::now();
    loop {
        let now = lab.host().stack_counters().unwrap();
        let marks = now.ce_marks - before.ce_marks;
        std::thread::sleep(QUIET);
        let is_quiet = now == lab.host().stack_counters().unwrap();
        let is_over = marks > 0 && is_quiet && expected == Expected::Some;
        if marks >= MARKED || is_over || begin.elapsed() > LONG {
            return marks;
        }
    }
}

/// Sends datagrams until the host receives one: packets sent too soon after an interface comes up are lost.
fn wait_until_heard(lab: &Lab) {
    let host = lab.host_address();
    let receiver = lab.host().run(|| UdpSocket::bind((host, 0)).unwrap()).unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let sender = lab.peer().run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    let to = receiver.local_addr().unwrap();
    let begin = Instant::now();
    loop {
        sender.send_to(&[1], to).unwrap();
        if receiver.recv(&mut [0]).is_ok() {
            return;
        }
        assert!(begin.elapsed() < LONG, "the host hears nothing");
    }
}

fn send(to: rxo_testbed::Mac, is_v6: bool, count: u32) {
    let mut sink = DeviceSink::packet(Lab::PEER_INTERFACE).unwrap();
    let segment = |number: u32| {
        let (flow, place) = (number / SEGMENTS_EACH, number % SEGMENTS_EACH);
        let packet = seg().flow(flow).seq(100 + place * 1_000).len(1_000).id(place as u16).tos(CE);
        let mut frame = if is_v6 { packet.v6().frame() } else { packet.frame() };
        frame.bytes[..6].copy_from_slice(&to);
        frame
    };
    let frames: Vec<Frame<Vec<u8>>> = (0..count).map(segment).collect();
    sink.transmit(frames.iter().map(Frame::borrowed)).unwrap();
    let counters = sink.counters();
    assert_eq!((counters.packets, counters.dropped), (count.into(), 0));
}
