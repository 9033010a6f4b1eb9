//! Programs of others with rxo inside, beside the same programs as they are published: every byte of TCP and each
//! datagram arrives, whichever end has it. `cargo xtask test --all` builds them.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use rxo_peers::{Tunnel, TunnelKind, TunnelProgram};
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
    let kinds = [TunnelKind::BoringtunCli, TunnelKind::Gotatun];
    let trials = kinds.into_iter().flat_map(|kind| {
        [("at_both_ends", true, true), ("near", true, false), ("far", false, true)].map(
            |(side, near, far)| {
                Trial::test(format!("{}_patched_{side}", kind.name()), move || {
                    carries(kind, near, far);
                    Ok(())
                })
            },
        )
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn carries(kind: TunnelKind, near: bool, far: bool) {
    let program = |is_patched| {
        let folder = if is_patched { "patched/bin" } else { "tunnels/bin" };
        TunnelProgram::foreign(kind, &built(folder))
    };
    let tunnel = Tunnel::start(&program(near), &program(far)).unwrap();
    let ways =
        [(tunnel.near(), tunnel.far(), Tunnel::FAR), (tunnel.far(), tunnel.near(), Tunnel::NEAR)];
    for (from, to, addresses) in ways {
        for address in addresses {
            carries_tcp(from, to, address);
            carries_udp(from, to, address);
        }
    }
}

fn carries_tcp(from: &Namespace, to: &Namespace, address: IpAddr) {
    let config = BulkConfig {
        connections: 3,
        bytes_per_connection: Some(1_500_000),
        ..BulkConfig::default()
    };
    let report = BulkTransfer::start(from, to, address, &config).unwrap().wait().unwrap();
    assert!(report.is_intact(), "to {address}: {report:?}");
    assert_eq!(report.received_bytes, 4_500_000);
}

/// Sends a few datagrams at a time, so that no queue overflows.
fn carries_udp(from: &Namespace, to: &Namespace, address: IpAddr) {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let bind = |namespace: &Namespace| namespace.run(|| UdpSocket::bind(any)).unwrap().unwrap();
    let (sender, receiver) = (bind(from), bind(to));
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
