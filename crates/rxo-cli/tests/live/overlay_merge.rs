//! TCP inside a VXLAN is coalesced on its way to a TAP that accepts it: the host's kernel gets few large
//! tunnel packets, and its VXLAN device the original bytes.

use std::net::IpAddr;

use rxo_testbed::{Lab, LabOptions, Namespace, Vxlan};
use serde_json::Value;

use crate::Test;
use crate::at_once::at_once;
use crate::process::Rxo;
use crate::setup::{self, SetUp};
use crate::traffic::transfer;

pub(crate) const TESTS: &[Test] = &[
    ("tcp_in_a_vxlan_reaches_the_tap_in_a_third_of_the_packets", reaches_the_tap),
    ("tunnels_off_leaves_tcp_in_a_vxlan_as_it_came", off_leaves_it),
];

/// Bytes of each transfer: more than four thousand packets of the wire's size.
const BYTES: u64 = 6_000_000;

/// A tunnel, and the checksums that its sender leaves to the nic.
#[derive(Clone, Copy, Debug)]
struct Overlay {
    is_outer_v6: bool,
    has_checksum: bool,
    /// `true` if the inner checksums are complete, like those from another machine.
    is_complete: bool,
}

impl Overlay {
    fn all() -> impl Iterator<Item = Self> {
        (0..8_u8).map(|bits| Self {
            is_outer_v6: bits & 1 != 0,
            has_checksum: bits & 2 != 0,
            is_complete: bits & 4 != 0,
        })
    }

    fn lab(self) -> LabOptions {
        LabOptions { partial_checksums: !self.is_complete, ..LabOptions::default() }
    }

    /// Connects peer and host.
    fn connect(self, lab: &Lab) {
        let outside: [IpAddr; 2] = match self.is_outer_v6 {
            false => [Lab::PEER_ADDRESSES.0.into(), Lab::HOST_ADDRESSES.0.into()],
            true => [Lab::PEER_ADDRESSES.1.into(), Lab::HOST_ADDRESSES.1.into()],
        };
        for (end, namespace) in [lab.peer(), lab.host()].into_iter().enumerate() {
            let (local, remote) = (outside[end], outside[1 - end]);
            let vxlan = Vxlan { local, remote, port: 4_789, has_checksum: self.has_checksum };
            let interface = namespace.interface("overlay0");
            interface.create_vxlan(vxlan).unwrap();
            interface.up().unwrap();
            interface.add_address(inside(false)[end], 24).unwrap();
            interface.add_address(inside(true)[end], 64).unwrap();
        }
    }
}

/// Returns the inner addresses of peer and host.
fn inside(is_v6: bool) -> [IpAddr; 2] {
    match is_v6 {
        false => ["10.88.0.1", "10.88.0.2"].map(|address| address.parse().unwrap()),
        true => ["fd88::1", "fd88::2"].map(|address| address.parse().unwrap()),
    }
}

/// Transfers into the host over both versions of IP, and returns rxo's totals. The kernel must not find a bad
/// checksum.
fn totals_of(overlay: Overlay, flags: &str) -> Value {
    let (lab, rxo) = setup::start(SetUp::TakeOver, overlay.lab(), flags);
    overlay.connect(&lab);
    // Packets that one end sent before the other was up may have been refused.
    transfer(lab.peer(), lab.host(), inside(false)[1], 1, 10_000);
    let before = checksum_errors(lab.host());
    for is_v6 in [false, true] {
        transfer(lab.peer(), lab.host(), inside(is_v6)[1], 1, BYTES);
    }
    assert_eq!(checksum_errors(lab.host()), before, "{overlay:?}");
    let totals = end(rxo);
    assert_eq!(totals["host_out"]["dropped"], 0, "{totals}");
    assert_eq!(totals["host_out"]["fallbacks"], 0, "{totals}");
    totals
}

fn end(rxo: Rxo) -> Value {
    rxo.signal("TERM");
    let (code, mut lines, said) = rxo.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    lines.pop().unwrap()
}

/// Returns the packets received from the nic, and those delivered to the TAP.
fn counts(totals: &Value) -> (u64, u64) {
    let count = |side: &str, what: &str| totals[side][what].as_u64().unwrap();
    (count("nic_in", "packets"), count("host_out", "deliveries"))
}

fn reaches_the_tap() {
    at_once(Overlay::all(), |overlay| {
        let totals = totals_of(overlay, "");
        let (packets, deliveries) = counts(&totals);
        eprintln!("{overlay:?}: {packets} packets in {deliveries} deliveries");
        assert!(packets > 2 * BYTES / 1_500, "{packets} packets: {totals}");
        assert!(packets >= 3 * deliveries, "{overlay:?}: {packets}, {deliveries}: {totals}");
    });
}

fn off_leaves_it() {
    at_once([false, true], |is_outer_v6| {
        let overlay = Overlay { is_outer_v6, has_checksum: true, is_complete: true };
        let (packets, deliveries) = counts(&totals_of(overlay, "--set tunnels=off"));
        assert_eq!(packets, deliveries, "{overlay:?}");
    });
}

/// Returns the datagrams and segments with bad checksums that the namespace's kernel counted.
fn checksum_errors(namespace: &Namespace) -> u64 {
    let counters = namespace.run(|| {
        let read = |name| std::fs::read_to_string(format!("/proc/thread-self/net/{name}"));
        (read("snmp").unwrap(), read("snmp6").unwrap())
    });
    let (v4, v6) = counters.unwrap();
    let lines: Vec<_> = v4.lines().collect();
    let v4 = lines.chunks_exact(2).flat_map(|pair| pair[0].split(' ').zip(pair[1].split(' ')));
    let v6 = v6.lines().filter_map(|line| line.split_once(char::is_whitespace));
    let all = v4.chain(v6).filter(|(name, _)| name.ends_with("InCsumErrors"));
    all.map(|(_, count)| count.trim().parse::<u64>().unwrap()).sum()
}
