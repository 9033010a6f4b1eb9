//! Every tunnel, over IPv4 and IPv6, with and without an outer checksum and large sends, to a TAP, a TUN and
//! a guest.
//!
//! The tests in mod.rs use the kernel's VXLAN. Here both ends are this process ([`TunnelEnd`]), because
//! kernels lack most of these tunnels, and because this end checks every outer header. In each cell TCP over
//! IPv4 and over IPv6 crosses both ways, and every byte of it is checked.

use std::net::IpAddr;

use rxo_peers::{Below, Encapsulation, TunnelCounters, TunnelEnd, TunnelOptions};
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Lab, Mac, Namespace, Tap};
use serde_json::Value;

use super::rate::spread;
use super::{Overlay, assert_nothing_was_lost, checksum_errors};
use crate::at_once::at_once;
use crate::guests::Socket;
use crate::process::Rxo;

/// The path between nic and host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The frames cross a plain wire, without rxo.
    Kernel,
    /// The frames cross `rxo run --host tap:…`.
    Tap,
    /// The frames cross `rxo run --nic tun:… --host tun:…`.
    Tun,
    /// The frames cross `rxo run --host vhost:…`, with another rxo as the guest.
    Guest,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    encapsulation: Encapsulation,
    is_outer_v6: bool,
    has_checksum: bool,
    sends_large: bool,
    way: Way,
}

impl Way {
    const ALL: [Self; 4] = [Self::Kernel, Self::Tap, Self::Tun, Self::Guest];
}

impl Cell {
    fn all(way: Way) -> impl Iterator<Item = Self> {
        let kinds = [
            Encapsulation::Vxlan,
            Encapsulation::Geneve,
            Encapsulation::Gre,
            Encapsulation::Fou,
            Encapsulation::Ip,
        ];
        let flags = (0..8).map(|bits| [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0]);
        let cells = kinds.into_iter().flat_map(move |encapsulation| {
            flags.clone().map(move |[sends_large, has_checksum, is_outer_v6]| Self {
                encapsulation,
                is_outer_v6,
                has_checksum,
                sends_large,
                way,
            })
        });
        cells.filter(|cell| cell.encapsulation != Encapsulation::Ip || !cell.has_checksum)
    }

    fn name(self) -> String {
        let version = if self.is_outer_v6 { 6 } else { 4 };
        let sum = if self.has_checksum { ", checksum" } else { "" };
        let large = if self.sends_large { ", GSO frames to the host" } else { "" };
        let tunnel = match self.encapsulation {
            Encapsulation::Vxlan => "VXLAN",
            Encapsulation::Geneve => "Geneve",
            Encapsulation::Gre => "GRE",
            Encapsulation::Fou => "FOU",
            Encapsulation::Ip => "IP in IP, SIT",
        };
        format!("{tunnel} over IPv{version}{sum}{large}")
    }

    /// Sends `bytes` in each direction over each IP version. Returns the rate in Gbit/s.
    fn cross(self, bytes: u64) -> f64 {
        let lab = Lab::through().unwrap();
        let wire = lab.host().interface("wire1");
        let wire = self.sends_large.then(|| {
            let tap = wire.create_tap().unwrap();
            wire.set_arp(false).unwrap();
            lab.host().set_sysctl("net.ipv6.conf.wire1.disable_ipv6", "1").unwrap();
            wire.up().unwrap();
            tap
        });
        let nic = if self.sends_large { "wire1" } else { Lab::WIRE_INTERFACE };
        let socket = Socket::new(&format!("overlay-{:?}", self.encapsulation));
        let path = socket.path();
        let start = |flags: String| Rxo::start(lab.host(), &flags).0;
        let (host, rxo) = match self.way {
            Way::Kernel => (nic, Vec::new()),
            Way::Tap => ("rxo0", vec![start(format!("--nic packet:{nic} --host tap:rxo0"))]),
            Way::Tun => ("rxo0", vec![start("--nic tun:nic0 --host tun:rxo0".to_owned())]),
            Way::Guest => {
                let outside = start(format!("--nic packet:{nic} --host vhost:{path}"));
                let inside = start(format!("--nic virtio:{path} --host tap:rxo0"));
                ("rxo0", vec![inside, outside])
            }
        };
        let (gbit_per_s, ends) = self.between(&lab, wire, host, bytes);
        // The processes end before their wire, whose loss would be an error.
        self.check(rxo, ends.each_ref().map(TunnelEnd::counters));
        gbit_per_s
    }

    /// Connects a tunnel end on each side, and sends through the tunnel. The peer's end is on `wire`, if
    /// given.
    fn between(
        self,
        lab: &Lab,
        wire: Option<Tap>,
        host: &str,
        bytes: u64,
    ) -> (f64, [TunnelEnd; 2]) {
        let host = lab.host().interface(host);
        let peer = match self.way {
            Way::Tun => lab.host().interface("nic0"),
            Way::Kernel | Way::Tap | Way::Guest => lab.peer().interface(Lab::PEER_INTERFACE),
        };
        if self.way != Way::Kernel {
            [&peer, &host].into_iter().for_each(|interface| interface.up().unwrap());
        }
        let below = wire.map_or(Below::Interface(&peer), Below::Wire);
        let ends =
            [self.end(0, lab.peer(), below), self.end(1, lab.host(), Below::Interface(&host))];
        let before = [lab.peer(), lab.host()].map(checksum_errors);
        let gbit_per_s = both_ways([lab.peer(), lab.host()], Overlay::addresses, bytes);
        assert_eq!([lab.peer(), lab.host()].map(checksum_errors), before, "{self:?}");
        (gbit_per_s, ends)
    }

    /// Returns one end. Only the peer sends large frames: the host's kernel would segment them by their outer
    /// headers.
    fn end(self, end: usize, namespace: &Namespace, below: Below<'_, '_>) -> TunnelEnd {
        let outside: [IpAddr; 2] = match self.is_outer_v6 {
            false => ["10.77.0.101", "10.77.0.102"].map(|address| address.parse().unwrap()),
            true => ["fd77::101", "fd77::102"].map(|address| address.parse().unwrap()),
        };
        let macs = (self.way != Way::Tun).then_some([MACS[1 - end], MACS[end]]);
        let options = TunnelOptions {
            encapsulation: self.encapsulation,
            has_checksum: self.has_checksum,
            local: outside[end],
            remote: outside[1 - end],
            macs,
            sends_large: self.sends_large && end == 0,
        };
        let inner = namespace.interface("overlay0");
        let tunnel = TunnelEnd::start(&inner, below, options).unwrap();
        inner.set_mtu(MTU).unwrap();
        inner.set_large_send_bytes(LARGEST_BYTES).unwrap();
        inner.add_address(Overlay::addresses(false)[end], 24).unwrap();
        inner.add_address(Overlay::addresses(true)[end], 64).unwrap();
        inner.up().unwrap();
        tunnel
    }

    /// Ends the processes, the host's first, and checks the counters.
    fn check(self, rxo: Vec<Rxo>, ends: [TunnelCounters; 2]) {
        assert_eq!(ends.map(|end| end.wrong), [0, 0], "{self:?}: {ends:?}");
        assert_eq!(ends[0].sent_large > 0, self.sends_large, "{self:?}: {ends:?}");
        for (n, rxo) in rxo.into_iter().enumerate() {
            rxo.signal("TERM");
            let (code, mut lines, said) = rxo.end();
            assert_eq!(code, Some(0), "{self:?}: {said}");
            let totals = lines.pop().unwrap();
            assert_adds_up(&totals);
            // Frames for a guest that has ended are dropped, so only the first process must have dropped
            // none.
            if n == 0 {
                assert_nothing_was_lost(&totals);
            }
        }
    }
}

/// Asserts that every frame was forwarded or counted as dropped, and that none was refused because of its
/// metadata.
pub(crate) fn assert_adds_up(totals: &Value) {
    for (into, out, overload) in
        [("nic_in", "host_out", totals["overload"].as_u64()), ("host_in", "nic_out", Some(0))]
    {
        let count = |side: &str, what: &str| totals[side][what].as_u64().unwrap();
        let given = count(into, "packets") + count(out, "segments_added");
        let gone = count(out, "frames") + count(out, "dropped_frames") + overload.unwrap();
        assert_eq!(given, gone, "{into} and {out}: {totals}");
        for what in ["invalid", "truncated"] {
            assert_eq!(count(into, what), 0, "{into}: {totals}");
        }
    }
}

/// Sends `bytes` between two ends with these addresses, over IPv4 and IPv6, in each direction. Returns the
/// total rate in Gbit/s.
pub(super) fn both_ways(
    [near, far]: [&Namespace; 2],
    addresses: impl Fn(bool) -> [IpAddr; 2],
    bytes: u64,
) -> f64 {
    let mut seconds = 0.0;
    for is_v6 in [false, true] {
        let [to_near, to_far] = addresses(is_v6);
        for (from, to, address) in [(near, far, to_far), (far, near, to_near)] {
            let bytes_per_connection = Some(bytes);
            let config = BulkConfig { bytes_per_connection, ..BulkConfig::default() };
            let transfer = BulkTransfer::start(from, to, address, &config).unwrap();
            let report = transfer.wait().unwrap();
            assert!(report.is_intact() && report.received_bytes == bytes, "{report:?}");
            seconds += report.duration.as_secs_f64();
        }
    }
    4.0 * bytes as f64 * 8e-9 / seconds
}

/// Runs one cell for each tunnel, each path, and each kind of frame metadata.
pub(super) fn each_tunnel_crosses() {
    let cell = |encapsulation, [is_outer_v6, has_checksum, sends_large]: [bool; 3], way| Cell {
        encapsulation,
        is_outer_v6,
        has_checksum,
        sends_large,
        way,
    };
    at_once(
        [
            cell(Encapsulation::Vxlan, [false, true, false], Way::Tun),
            cell(Encapsulation::Geneve, [false, true, true], Way::Tap),
            cell(Encapsulation::Geneve, [true, false, true], Way::Guest),
            cell(Encapsulation::Gre, [false, true, true], Way::Tap),
            cell(Encapsulation::Gre, [true, false, false], Way::Tun),
            cell(Encapsulation::Fou, [true, true, true], Way::Guest),
            cell(Encapsulation::Fou, [false, false, false], Way::Tap),
            cell(Encapsulation::Ip, [false, false, true], Way::Tap),
            cell(Encapsulation::Ip, [true, false, false], Way::Tun),
        ],
        |cell| {
            cell.cross(1_000_000);
        },
    );
}

/// Runs every cell, and prints its rate as a share of the rate without rxo: medians of interleaved rounds. A
/// low rate is no failure.
pub(super) fn all_tunnels_cross() {
    let rows: Vec<_> = Cell::all(Way::Kernel).collect();
    let mut rounds: Vec<[Vec<f64>; 4]> = rows.iter().map(|_| Default::default()).collect();
    for _ in 0..ROUNDS {
        for (alone, rates) in rows.iter().zip(&mut rounds) {
            for (way, rates) in Way::ALL.into_iter().zip(rates) {
                // The peer's kernel segments before it sends into a TUN.
                if !(way == Way::Tun && alone.sends_large) {
                    rates.push(Cell { way, ..*alone }.cross(BYTES));
                }
            }
        }
    }
    eprintln!("| tunnel | without rxo, Gbit/s | TAP | TUN | guest |");
    eprintln!("|---|---|---|---|---|");
    for (alone, [kernel, ways @ ..]) in rows.iter().zip(&rounds) {
        let shares = ways.each_ref().map(|rates| {
            let shares = shares(rates, kernel);
            if shares.is_empty() { "-".to_owned() } else { spread(shares) }
        });
        eprintln!("| {} | {} | {} |", alone.name(), spread(kernel.clone()), shares.join(" | "));
    }
    print_all_together(&rows, &rounds);
}

/// Prints the median of all tunnels, with minimum and maximum.
fn print_all_together(rows: &[Cell], rounds: &[[Vec<f64>; 4]]) {
    eprintln!("\n| all tunnels | TAP | TUN | guest |\n|---|---|---|---|");
    for sends_large in [false, true] {
        let shares = [1, 2, 3].map(|way| {
            let of = rows.iter().zip(rounds).filter(|(cell, _)| cell.sends_large == sends_large);
            let shares = of.map(|(_, rates)| shares(&rates[way], &rates[0]));
            let medians: Vec<_> = shares.filter(|all| !all.is_empty()).map(median).collect();
            if medians.is_empty() { "-".to_owned() } else { spread(medians) }
        });
        let what = if sends_large { "GSO frames to the host" } else { "single frames" };
        eprintln!("| {what} | {} |", shares.join(" | "));
    }
}

fn shares(rates: &[f64], of: &[f64]) -> Vec<f64> {
    rates.iter().zip(of).map(|(rate, alone)| rate / alone).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const ROUNDS: usize = 3;
const BYTES: u64 = 10_000_000;

/// MAC addresses of the peer's and the host's frames.
const MACS: [Mac; 2] = [[0x02, 0, 0, 0, 0, 0x51], [0x02, 0, 0, 0, 0, 0x52]];

/// The MTU inside a tunnel: with the headers of any tunnel a packet stays within 1,500 bytes.
const MTU: u32 = 1_400;
/// The largest GSO frame inside a tunnel: with the headers of any tunnel it stays within 65,535 bytes.
const LARGEST_BYTES: u32 = 60_000;
