//! Real TCP through `rxo run`, in both directions, with every byte checked.

use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use rxo_peers::datagram;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Lab, LabOptions, Namespace};
use serde_json::Value;

use crate::Test;
use crate::at_once::at_once;
use crate::process::Rxo;
use crate::report::Scratch;
use crate::setup::{self, SetUp};

pub(crate) const TESTS: &[Test] = &[
    ("tcp_crosses_both_ways_whole", tcp_crosses_both_ways_whole),
    ("full_checksums_cross_whole", full_checksums_cross_whole),
    ("ipv6_crosses_whole", ipv6_crosses_whole),
    ("every_policy_that_a_tap_carries_is_transparent", every_policy_is_transparent),
    ("a_worse_network_is_crossed_whole_and_written_down", a_worse_network_is_crossed_whole),
    ("udp_crosses_whole_and_coalesced", udp_crosses_whole),
    ("a_packet_socket_carries_aggregates_too", a_packet_socket_carries_aggregates_too),
];

const FLAGS: &str = "--nic packet:wire0 --host tap:rxo0";
/// Time limit, longer than any machine needs.
const LONG: Duration = Duration::from_secs(60);

pub(crate) fn transfer(
    from: &Namespace,
    to: &Namespace,
    address: IpAddr,
    connections: usize,
    bytes: u64,
) {
    let bytes_per_connection = Some(bytes);
    let config = BulkConfig { connections, bytes_per_connection, ..BulkConfig::default() };
    let report = BulkTransfer::start(from, to, address, &config).unwrap().wait().unwrap();
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.received_bytes, bytes * connections as u64);
}

/// Datagrams in each direction before an empty one acknowledges them, so that the receiver keeps up.
const AT_ONCE: u32 = 60;

/// Sends empty datagrams until one is answered: the first ones may be lost during address resolution.
fn greet(socket: &UdpSocket) {
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let answers = || {
        socket.send(&[]).unwrap();
        socket.recv(&mut [0; 1]).is_ok()
    };
    assert!((0..300).any(|_| answers()), "nobody answers");
}

/// The answer to a greeting.
const HELLO: u8 = 1;

pub(crate) fn udp_transfer(from: &Namespace, to: &Namespace, address: IpAddr, count: u32) {
    let bound = to.run(|| UdpSocket::bind((address, 0)).unwrap()).unwrap();
    bound.set_read_timeout(Some(LONG)).unwrap();
    let at = bound.local_addr().unwrap();
    let receiver = std::thread::spawn(move || {
        let (mut buffer, mut next) = ([0; 2_048], 0);
        while next < count {
            let (bytes, sender) = bound.recv_from(&mut buffer).unwrap();
            if bytes == 0 {
                bound.send_to(&[HELLO], sender).unwrap();
                continue;
            }
            assert!(buffer[..bytes] == datagram(next), "datagram {next} of {bytes} bytes");
            next += 1;
            if next % AT_ONCE == 0 {
                bound.send_to(&[], sender).unwrap();
            }
        }
    });
    from.run(|| {
        let socket = UdpSocket::bind(if at.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }).unwrap();
        socket.connect(at).unwrap();
        greet(&socket);
        socket.set_read_timeout(Some(LONG)).unwrap();
        for number in 0..count {
            assert_eq!(socket.send(&datagram(number)).unwrap(), datagram(number).len());
            if (number + 1) % AT_ONCE == 0 {
                // A late answer to a greeting must not count as an answer to the datagrams.
                while socket.recv(&mut [0; 1]).unwrap() > 0 {}
            }
        }
    })
    .unwrap();
    receiver.join().unwrap();
}

/// The TAP segments large datagrams for the host's sockets, which receive the original ones.
fn udp_crosses_whole() {
    const COUNT: u32 = 6_000;
    let flags = "--set udp=equal hold=2ms";
    let (lab, rxo) = setup::start(SetUp::TakeOver, LabOptions::default(), flags);
    let addresses = (lab.host_address(), Lab::HOST_ADDRESSES.1.into());
    for address in [addresses.0, addresses.1] {
        udp_transfer(lab.peer(), lab.host(), address, COUNT);
    }
    udp_transfer(lab.host(), lab.peer(), lab.peer_address(), COUNT);
    let totals = totals(rxo);
    assert!(totals["nic_in"]["packets"].as_u64().unwrap() >= 2 * u64::from(COUNT), "{totals}");
    assert!(totals["packets_per_aggregate"].as_f64().unwrap() > 2.0, "{totals}");
    for side in ["host_out", "nic_out"] {
        assert_eq!(totals[side]["dropped"], 0, "{totals}");
        assert_eq!(totals[side]["fallbacks"], 0, "{totals}");
    }
}

/// Ends the process and returns its totals, whose counters must agree with each other and with the kernel's.
pub(crate) fn totals(rxo: Rxo) -> Value {
    rxo.signal("TERM");
    let (code, mut lines, said) = rxo.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let totals = lines.pop().unwrap();
    assert_eq!(totals["unsent"], 0, "{totals}");
    let mut stages = totals["imbalance"].as_object().unwrap().values();
    assert!(stages.all(|frames| *frames == 0), "{totals}");
    totals
}

fn tcp_crosses_both_ways_whole() {
    SetUp::ALL.into_iter().for_each(tcp_crosses_both_ways);
}

fn tcp_crosses_both_ways(set_up: SetUp) {
    let (lab, rxo) = setup::start(set_up, LabOptions::default(), "");
    transfer(lab.peer(), lab.host(), lab.host_address(), 4, 5_000_000);
    transfer(lab.host(), lab.peer(), lab.peer_address(), 4, 5_000_000);
    let totals = totals(rxo);
    // Segments have 1448 bytes, and a delivery has several.
    assert!(totals["nic_in"]["packets"].as_u64().unwrap() > 20_000_000 / 1448, "{totals}");
    assert!(totals["packets_per_aggregate"].as_f64().unwrap() > 2.0, "{totals}");
    assert!(totals["nic_out"]["bytes"].as_u64().unwrap() > 20_000_000, "{totals}");
    setup::assert_nothing_came_twice(&lab, &totals);
    for side in ["host_out", "nic_out"] {
        assert_eq!(totals[side]["dropped"], 0, "{totals}");
    }
}

fn full_checksums_cross_whole() {
    let options = LabOptions { partial_checksums: false, ..LabOptions::default() };
    let (lab, rxo) = setup::start(SetUp::TakeOver, options, "");
    transfer(lab.peer(), lab.host(), lab.host_address(), 2, 5_000_000);
    let totals = totals(rxo);
    assert!(totals["packets_per_aggregate"].as_f64().unwrap() > 2.0, "{totals}");
    assert_eq!(totals["bypass"].get("bad_tcp_checksum"), None, "{totals}");
}

fn ipv6_crosses_whole() {
    for set_up in SetUp::ALL {
        let (lab, rxo) = setup::start(set_up, LabOptions::default(), "");
        transfer(lab.peer(), lab.host(), Lab::HOST_ADDRESSES.1.into(), 2, 5_000_000);
        let totals = totals(rxo);
        assert!(totals["packets_per_aggregate"].as_f64().unwrap() > 2.0, "{totals}");
        setup::assert_nothing_came_twice(&lab, &totals);
    }
}

fn every_policy_is_transparent() {
    let all = rxo_coalesce::Policy::all();
    let carried: Vec<_> = all.iter().filter(|policy| !policy.needs_records).collect();
    at_once(carried.chunks(POLICIES_OF_A_THREAD), |policies| {
        for policy in policies {
            let flags = format!("--policy {}", policy.name);
            let (lab, rxo) = setup::start(SetUp::TakeOver, LabOptions::default(), &flags);
            transfer(lab.peer(), lab.host(), lab.host_address(), 8, 500_000);
            totals(rxo);
        }
    });
}

/// Policies that one thread tests, one after the other.
const POLICIES_OF_A_THREAD: usize = 4;

/// A round trip of 10 ms, loss and reordering: TCP recovers, and the capture contains the frames that passed.
fn a_worse_network_is_crossed_whole() {
    let scratch = Scratch::new("tap");
    let file = scratch.file("passed.pcapng");
    let lab = Lab::through().unwrap();
    let flags = format!(
        "{FLAGS} --tap {} --impair loss=1%,reorder=1%/3,delay=5ms,seed=1 --impair-back delay=5ms",
        file.display()
    );
    let (rxo, configuration) = Rxo::start(lab.host(), &flags);
    assert_eq!(
        configuration["impair"],
        "loss=1%,duplicate=0%,reorder=1%/3,delay=5ms,jitter=0ms,gather=0ms,limit=65536,seed=1"
    );
    lab.attach_host("rxo0").unwrap();
    let begin = Instant::now();
    transfer(lab.peer(), lab.host(), lab.host_address(), 2, 1_500_000);
    // The handshake and each window of slow start take a round trip.
    assert!(begin.elapsed() > Duration::from_millis(50), "{:?}", begin.elapsed());
    transfer(lab.host(), lab.peer(), lab.peer_address(), 1, 500_000);
    let totals = totals(rxo);
    for what in ["lost", "reordered"] {
        assert!(totals["impaired"][what].as_u64().unwrap() > 5, "{totals}");
    }
    assert_eq!(totals["impaired_back"].get("lost"), None, "{totals}");
    let [nic, host] = packets_by_interface(&file);
    assert_eq!(nic, count(&totals, ["nic_in", "nic_out"]));
    assert_eq!(host, count(&totals, ["host_in", "host_out"]));
}

/// Returns the number of packets that `totals` count at two sides of a device.
pub(crate) fn count(totals: &Value, sides: [&str; 2]) -> u64 {
    let packets = [&totals[sides[0]]["packets"], &totals[sides[1]]["packets"]];
    let deliveries = [&totals[sides[0]]["deliveries"], &totals[sides[1]]["deliveries"]];
    packets.iter().chain(&deliveries).filter_map(|value| value.as_u64()).sum()
}

/// Returns the number of packets of each of the two interfaces in a capture file.
pub(crate) fn packets_by_interface(file: &Path) -> [u64; 2] {
    let mut capture = rxo_capture::Capture::open(file).unwrap();
    let (mut counts, mut records) = ([0; 2], Vec::new());
    while capture.read_batch(&mut records, 64).unwrap() > 0 {
        records.drain(..).for_each(|record| counts[record.interface as usize] += 1);
    }
    counts
}

/// The host's side is a veth here, and the host's address is on its other end.
fn a_packet_socket_carries_aggregates_too() {
    let lab = Lab::through().unwrap();
    let (inner, outer) = (lab.host().interface("inner0"), lab.host().interface("outer0"));
    rxo_testbed::create_veth(&inner, &outer).unwrap();
    outer.set_arp(false).unwrap();
    lab.host().set_sysctl("net.ipv6.conf.outer0.disable_ipv6", "1").unwrap();
    outer.up().unwrap();
    lab.attach_host("inner0").unwrap();
    let (rxo, _) = Rxo::start(lab.host(), "--nic packet:wire0 --host packet:outer0");
    transfer(lab.peer(), lab.host(), lab.host_address(), 2, 20_000_000);
    transfer(lab.host(), lab.peer(), lab.peer_address(), 2, 20_000_000);
    let totals = totals(rxo);
    assert!(totals["packets_per_aggregate"].as_f64().unwrap() > 2.0, "{totals}");
}
