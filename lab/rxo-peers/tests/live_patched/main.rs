//! Programs of others with rxo inside, beside the same programs as they are published: every byte of TCP and each
//! datagram arrives, whichever end has it. `cargo xtask test --all` builds them.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use rxo_peers::{CarrierKind, Programs, Way};
use rxo_testbed::Namespace;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};

/// Maximum time for which a test waits for an expected event.
const LONG: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    if let Err(error) = rxo_testbed::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let trials = CarrierKind::PATCHED.into_iter().flat_map(|kind| {
        let sides = [("at_both_ends", true, true), ("near", true, false), ("far", false, true)];
        let trials = if kind.has_two_ends() { 3 } else { 1 };
        sides.into_iter().take(trials).map(move |(side, near, far)| {
            let side = if trials == 1 { String::new() } else { format!("_{side}") };
            Trial::test(format!("{}_patched{side}", kind.name()), move || {
                carries(kind, near, far);
                Ok(())
            })
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn carries(kind: CarrierKind, near: bool, far: bool) {
    let programs = |have_rxo| {
        let folder = built(if have_rxo { "patched/bin" } else { "tunnels/bin" });
        Programs { folder, have_rxo }
    };
    let carrier = kind.start(&programs(near), &programs(far)).unwrap();
    for way in carrier.ways() {
        for &address in &way.addresses {
            carries_tcp(&way, address);
            if !way.is_download {
                carries_udp(&way, address);
            }
        }
    }
}

fn carries_tcp(way: &Way<'_>, address: IpAddr) {
    let config = BulkConfig {
        connections: 3,
        is_download: way.is_download,
        bytes_per_connection: Some(1_500_000),
        ..BulkConfig::default()
    };
    let report = BulkTransfer::start(way.from, way.to, address, &config).unwrap().wait().unwrap();
    assert!(report.is_intact(), "to {address}: {report:?}");
    assert_eq!(report.received_bytes, 4_500_000);
}

/// Sends a few datagrams at a time, so that no queue overflows.
fn carries_udp(way: &Way<'_>, address: IpAddr) {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let bind = |namespace: &Namespace| namespace.run(|| UdpSocket::bind(any)).unwrap().unwrap();
    let (sender, receiver) = (bind(way.from), bind(way.to));
    receiver.set_read_timeout(Some(LONG)).unwrap();
    let to = SocketAddr::new(address, receiver.local_addr().unwrap().port());
    let mut bytes = [0; 2_000];
    for round in 0..20 {
        let of = |n: u8| vec![round ^ n; if n == 9 { 700 } else { 1_200 }];
        (0..20).for_each(|n| assert!(sender.send_to(&of(n), to).is_ok()));
        for n in 0..20 {
            let length = receiver.recv(&mut bytes).unwrap();
            assert_eq!(bytes[..length], of(n), "datagram {n} of round {round} to {to}");
        }
    }
}

/// Returns a folder of programs below the target directory, which contains this test.
fn built(folder: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let folders = here.ancestors().map(|above: &Path| above.join(folder));
    folders.into_iter().find(|folder| folder.is_dir()).unwrap_or_else(|| {
        panic!("{folder} is not there; `cargo xtask test --all --only live` builds it")
    })
}
