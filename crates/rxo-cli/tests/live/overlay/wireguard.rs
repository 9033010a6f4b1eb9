//! A WireGuard tunnel between two instances of this project's example, through `rxo run --take-over`. Its
//! outside is trains of UDP datagrams of equal size with encrypted content.

use std::path::Path;

use rxo_peers::{Tunnel, TunnelProgram};
use rxo_testbed::Namespace;

use super::checksum_errors;
use super::matrix::{assert_adds_up, both_ways};
use crate::process::Rxo;

pub(super) fn wireguard_crosses() {
    let alone = gbit_per_s(|_| None);
    let flags = "--nic packet:wire --host tap:rxo0 --take-over --set udp=equal";
    let carried = gbit_per_s(|far| Some(Rxo::start(far, flags).0));
    eprintln!("WireGuard: {alone:.2} Gbit/s without rxo, {:.2} of it with", carried / alone);
}

/// Returns the rate with the process that `start` starts in the far end's network.
fn gbit_per_s(start: impl FnOnce(&Namespace) -> Option<Rxo>) -> f64 {
    let program = Path::new(crate::PROGRAM).with_file_name("rxo-tunnel");
    assert!(program.exists(), "{}: build it with `-p rxo-tunnel`", program.display());
    let ends = [(); 2].map(|()| TunnelProgram::rxo(&program, &[]));
    let tunnel = Tunnel::start(&ends[0], &ends[1]).unwrap();
    let rxo = start(tunnel.far());
    let sides = [tunnel.near(), tunnel.far()];
    let before = sides.map(checksum_errors);
    let rate = both_ways(
        sides,
        |is_v6| [Tunnel::NEAR, Tunnel::FAR].map(|end| end[usize::from(is_v6)]),
        BYTES,
    );
    assert_eq!(sides.map(checksum_errors), before);
    let Some(rxo) = rxo else { return rate };
    rxo.signal("TERM");
    let (code, mut lines, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    let totals = lines.pop().unwrap();
    assert_adds_up(&totals);
    // Trains from the ends are forwarded undivided.
    for side in ["host_out", "nic_out"] {
        let count = |what: &str| totals[side][what].as_u64().unwrap();
        assert!(count("bytes") > 3_000 * count("deliveries"), "{totals}");
    }
    rate
}

const BYTES: u64 = 20_000_000;
