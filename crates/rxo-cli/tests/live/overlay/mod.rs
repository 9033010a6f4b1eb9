//! Overlays: TCP inside the datagrams of a VXLAN crosses `rxo run`, whatever metadata the kernel attaches.
//! Container clusters use this setup: a veth with a tunnel over it.

pub(crate) mod matrix;
mod rate;
mod wireguard;

use std::net::IpAddr;

use rxo_testbed::{Lab, LabOptions, Namespace, Vxlan};
use serde_json::Value;

use crate::Test;
use crate::at_once::at_once;
use crate::process::Rxo;
use crate::setup::{self, SetUp};
use crate::traffic::transfer;

pub(crate) const TESTS: &[Test] = &[
    ("tcp_in_a_vxlan_crosses_both_ways_whole", tcp_in_a_vxlan_crosses),
    ("tcp_in_datagrams_to_any_port_crosses_both_ways_whole", tcp_in_datagrams_crosses),
    ("tcp_in_each_tunnel_crosses_both_ways_whole", matrix::each_tunnel_crosses),
    ("tcp_in_a_tunnel_in_a_tunnel_crosses_both_ways_whole", a_tunnel_in_a_tunnel_crosses),
];

pub(crate) const LONG_TESTS: &[Test] = &[
    ("many_bytes_cross_an_overlay_beside_the_kernel_alone", rate::beside_the_kernel_alone),
    ("tcp_in_every_tunnel_crosses_to_every_kind_of_host", matrix::all_tunnels_cross),
    ("tcp_in_a_wireguard_tunnel_crosses_both_ways", wireguard::wireguard_crosses),
];

/// VXLAN's own port, and a port that identifies no tunnel.
const PORTS: [u16; 2] = [4_789, 5_999];

/// The settings of an overlay, and of the traffic through it.
#[derive(Clone, Copy, Debug)]
struct Overlay {
    port: u16,
    has_checksum: bool,
    is_outer_v6: bool,
}

impl Overlay {
    fn all(port: u16) -> impl Iterator<Item = Self> {
        [(false, false), (true, false), (false, true), (true, true)]
            .into_iter()
            .map(move |(has_checksum, is_outer_v6)| Self { port, has_checksum, is_outer_v6 })
    }

    /// Returns the inner addresses of peer and host.
    fn addresses(is_v6: bool) -> [IpAddr; 2] {
        match is_v6 {
            false => ["10.88.0.1", "10.88.0.2"].map(|address| address.parse().unwrap()),
            true => ["fd88::1", "fd88::2"].map(|address| address.parse().unwrap()),
        }
    }

    /// Connects both ends.
    fn connect(self, lab: &Lab) {
        let outside: [IpAddr; 2] = match self.is_outer_v6 {
            false => [Lab::PEER_ADDRESSES.0.into(), Lab::HOST_ADDRESSES.0.into()],
            true => [Lab::PEER_ADDRESSES.1.into(), Lab::HOST_ADDRESSES.1.into()],
        };
        let inside = [false, true].map(Self::addresses);
        self.connect_by((lab, "overlay0"), outside, &inside);
    }

    /// Connects both ends, which reach each other at `outside`, through interfaces of this name.
    fn connect_by(self, (lab, name): (&Lab, &str), outside: [IpAddr; 2], inside: &[[IpAddr; 2]]) {
        for (end, namespace) in [lab.peer(), lab.host()].into_iter().enumerate() {
            let interface = namespace.interface(name);
            let (local, remote) = (outside[end], outside[1 - end]);
            let Self { port, has_checksum, .. } = self;
            interface.create_vxlan(Vxlan { local, remote, port, has_checksum }).unwrap();
            interface.up().unwrap();
            for addresses in inside {
                let bits = if addresses[end].is_ipv4() { 24 } else { 64 };
                interface.add_address(addresses[end], bits).unwrap();
            }
        }
    }
}

fn tcp_in_a_vxlan_crosses() {
    at_once(Overlay::all(PORTS[0]), crosses);
}

fn tcp_in_datagrams_crosses() {
    at_once(Overlay::all(PORTS[1]), crosses);
}

fn crosses(overlay: Overlay) {
    let (lab, rxo) = setup::start(SetUp::TakeOver, LabOptions::default(), "");
    overlay.connect(&lab);
    // The first packet of one end came before the other existed, and counted as an error: a datagram without
    // a checksum over IPv6.
    transfer(lab.peer(), lab.host(), Overlay::addresses(false)[1], 1, 10_000);
    let before = [lab.peer(), lab.host()].map(checksum_errors);
    for is_v6 in [false, true] {
        let [peer, host] = Overlay::addresses(is_v6);
        transfer(lab.peer(), lab.host(), host, 2, 3_000_000);
        transfer(lab.host(), lab.peer(), peer, 2, 3_000_000);
    }
    assert_eq!([lab.peer(), lab.host()].map(checksum_errors), before, "{overlay:?}");
    let totals = totals(rxo);
    assert!(totals["nic_in"]["bytes"].as_u64().unwrap() > 12_000_000, "{totals}");
    matrix::assert_adds_up(&totals);
    assert_nothing_was_lost(&totals);
}

/// rxo parses one level of tunnels. The kernel sends no GSO frames in two, so every frame crosses unchanged.
fn a_tunnel_in_a_tunnel_crosses() {
    at_once(Overlay::all(PORTS[0]), |overlay| {
        let (lab, rxo) = setup::start(SetUp::TakeOver, LabOptions::default(), "");
        overlay.connect(&lab);
        let inside = ["10.89.0.1", "10.89.0.2"].map(|address| address.parse().unwrap());
        let (port, outside) = (PORTS[1], Overlay::addresses(overlay.is_outer_v6));
        Overlay { port, ..overlay }.connect_by((&lab, "overlay1"), outside, &[inside]);
        for namespace in [lab.peer(), lab.host()] {
            namespace.interface("overlay0").set_mtu(1_430).unwrap();
            namespace.interface("overlay1").set_mtu(1_360).unwrap();
        }
        let before = [lab.peer(), lab.host()].map(checksum_errors);
        transfer(lab.peer(), lab.host(), inside[1], 2, 1_000_000);
        transfer(lab.host(), lab.peer(), inside[0], 2, 1_000_000);
        assert_eq!([lab.peer(), lab.host()].map(checksum_errors), before, "{overlay:?}");
        let totals = totals(rxo);
        matrix::assert_adds_up(&totals);
        assert_nothing_was_lost(&totals);
    });
}

/// Ends the process and returns its totals. It may print only one line: that a packet socket segments no
/// tunnels.
fn totals(rxo: Rxo) -> Value {
    rxo.signal("TERM");
    let (code, mut lines, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.lines().count() <= 1 && said.lines().all(|line| line.contains("of a tunnel")),
        "{said}"
    );
    lines.pop().unwrap()
}

/// Asserts that nothing was dropped, and that no frame was refused because of its metadata.
fn assert_nothing_was_lost(totals: &Value) {
    for (into, out) in [("nic_in", "host_out"), ("host_in", "nic_out")] {
        assert_eq!(totals[out]["dropped"], 0, "{totals}");
        assert_eq!(totals[into]["invalid"], 0, "{totals}");
    }
}

/// Returns the datagrams and segments with bad checksums that the namespace's kernel counted.
fn checksum_errors(namespace: &Namespace) -> u64 {
    let read = || {
        let snmp = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
        let snmp6 = std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap_or_default();
        errors_v4(&snmp) + errors_v6(&snmp6)
    };
    namespace.run(read).unwrap()
}

/// Returns the sum of `InCsumErrors` in pairs of lines, names above values.
fn errors_v4(snmp: &str) -> u64 {
    let lines: Vec<_> = snmp.lines().collect();
    let pairs = lines.chunks_exact(2).flat_map(|pair| pair[0].split(' ').zip(pair[1].split(' ')));
    pairs
        .filter(|(name, _)| *name == "InCsumErrors")
        .map(|(_, value)| value.parse::<u64>().unwrap())
        .sum()
}

fn errors_v6(snmp6: &str) -> u64 {
    let errors = snmp6.lines().filter(|line| line.contains("InCsumErrors"));
    errors.map(|line| line.split_whitespace().last().unwrap().parse::<u64>().unwrap()).sum()
}
