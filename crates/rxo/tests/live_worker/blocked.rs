//! Tests that a problem at one sink of a worker does not delay the other direction.

use std::net::{IpAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rxo::Policy;
use rxo::worker::WorkerConfig;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer, PingPongConfig, ping_pong};
use rxo_testbed::{Lab, LabOptions, RateLimit};

use crate::Test;
use crate::path::{Stopper, through};

pub(crate) const TESTS: &[Test] = &[
    ("an_egress_filter_delays_nobody_else", filtered),
    ("a_shaped_way_out_loses_nothing_of_the_way_in", shaped),
];

/// The number of datagrams that arrive while the sink to the wire is full: a test of some seconds.
const DATAGRAMS: u64 = 8_000;
/// The discard port.
const DISCARD: u16 = 9;
/// The minimum number of measurements of the round trip, and the maximum time for all of them.
const LEAST: usize = 3;
const LONG: Duration = Duration::from_secs(60);

/// The host sends as fast as it can to a port that its own filter drops. During that time, requests to the
/// host are answered without additional delay.
fn filtered() {
    let ran = through(LabOptions::default(), WorkerConfig::new(Policy::linux_gro()), |lab| {
        let rules = format!(
            "add table netdev rxo\n\
             add chain netdev rxo out {{ type filter hook egress device {} priority 0; }}\n\
             add rule netdev rxo out udp dport {DISCARD} drop\n",
            Lab::WIRE_INTERFACE
        );
        lab.host().run(|| nft(&rules)).unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| lab.host().run(|| flood(lab.peer_address(), &stop)).unwrap());
            let _stopper = Stopper(&stop);
            // If the worker waited for every dropped packet, the round trip would be ten milliseconds or
            // more. Another process may use the core for some time, but not in every measurement.
            let (begin, mut medians) = (Instant::now(), Vec::new());
            while medians.len() < LEAST || medians.iter().all(|median| *median >= 5_000.0) {
                assert!(begin.elapsed() < LONG, "{medians:?} us");
                medians.push(median_us(lab));
            }
        });
    });
    let totals = ran.outcome.totals.all;
    ran.outcome.result.unwrap();
    let out = totals.nic_out;
    assert!(out.dropped_frames > 20, "the filter did drop: {out:?}");
    assert_eq!(out.frames + out.dropped_frames, totals.host_in.frames);
    assert_eq!((totals.nic_in.ring_drops, totals.overload), (0, 0));
}

/// Measures round trips from the peer to the host for a short time; returns their median.
fn median_us(lab: &Lab) -> f64 {
    let config = PingPongConfig {
        duration: Duration::from_millis(300),
        client_core: None,
        server_core: None,
    };
    let report = ping_pong(lab.peer(), lab.host(), lab.host_address(), config).unwrap();
    report.quantile_us(0.5)
}

/// The link to the peer is limited to 20 Mbit/s, and the host sends more. Datagrams to the host at a modest
/// rate must all arrive, in batches so small that a pause of a few milliseconds would overflow the ring.
fn shaped() {
    let config = WorkerConfig {
        budget_frames: 16,
        overload: None,
        ..WorkerConfig::new(Policy::linux_gro())
    };
    let arrived = AtomicU64::new(0);
    let ran = through(LabOptions::default(), config, |lab| {
        let limit = RateLimit { queue_bytes: 100_000, burst_bytes: 70_000, bytes_per_s: 2_500_000 };
        lab.host().interface(Lab::WIRE_INTERFACE).limit_rate(limit).unwrap();
        let bulk = BulkConfig { connections: 4, ..BulkConfig::default() };
        let outgoing =
            BulkTransfer::start(lab.host(), lab.peer(), lab.peer_address(), &bulk).unwrap();
        arrived.store(datagrams(lab, DATAGRAMS), Ordering::Relaxed);
        lab.host()
            .interface(Lab::WIRE_INTERFACE)
            .limit_rate(RateLimit { bytes_per_s: 1 << 30, burst_bytes: 1 << 20, ..limit })
            .unwrap();
        // Otherwise the host would go on sending what its sockets hold, until the worker has stopped.
        outgoing.stop().unwrap();
        // A frame that the worker still keeps when it stops is dropped. Frames leave in order, so once an answer has
        // come through, none is kept.
        median_us(lab);
    });
    let totals = ran.outcome.totals.all;
    ran.outcome.result.unwrap();
    // The queue of the interface refuses the packets that do not fit, and the sink sends them later.
    assert!(totals.nic_out.bytes_copied_aside > 0, "the link was not slow: {:?}", totals.nic_out);
    assert_eq!(totals.nic_out.dropped_frames, 0);
    assert_eq!(totals.nic_in.ring_drops, 0);
    assert_eq!(totals.host_out.dropped_frames, 0);
    assert_eq!(arrived.into_inner(), DATAGRAMS);
}

fn nft(rules: &str) {
    let mut command = Command::new("nft");
    let child = command.args(["-f", "-"]).stdin(Stdio::piped()).spawn();
    let mut child = child.expect("nft, of the package nftables");
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), rules.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{rules}");
}

fn flood(to: IpAddr, stop: &AtomicBool) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((to, DISCARD)).unwrap();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..4 {
            // No socket receives on that port, so an ICMP error may be returned.
            let _sent = socket.send(&[0; 1_000]);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sends `count` datagrams to the host, ten every two milliseconds; returns the number that arrived.
fn datagrams(lab: &Lab, count: u64) -> u64 {
    let address = lab.host_address();
    let receiver = lab.host().run(|| UdpSocket::bind((address, 4_000)).unwrap()).unwrap();
    let before = lab.host().stack_counters().unwrap().datagrams_not_taken;
    // Datagrams that did not fit into the socket's buffer have arrived as well: the speed of the reader is
    // not under test.
    let not_taken = || lab.host().stack_counters().unwrap().datagrams_not_taken - before;
    receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let seen = thread::spawn(move || {
        let mut buffer = [0; 64];
        (0..count).take_while(|_| receiver.recv(&mut buffer).is_ok()).count() as u64
    });
    let send = || {
        let sender = UdpSocket::bind("0.0.0.0:0").unwrap();
        for _ in 0..count / 10 {
            for _ in 0..10 {
                sender.send_to(&[1; 20], (address, 4_000)).unwrap();
            }
            thread::sleep(Duration::from_millis(2));
        }
    };
    lab.peer().run(send).unwrap();
    seen.join().unwrap() + not_taken()
}
