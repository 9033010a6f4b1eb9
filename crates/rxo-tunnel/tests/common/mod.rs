//! Code that all live tests of the tunnel share.

use std::net::IpAddr;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use rxo_testbed::Namespace;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};

/// Runs the tests `trials`, which create network namespaces.
pub(crate) fn run(trials: Vec<Trial>) -> ExitCode {
    let arguments = Arguments::from_args();
    if let Err(error) = rxo_testbed::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Sends 4.5 MB over three connections, and compares every byte.
pub(crate) fn assert_tcp_is_intact(from: &Namespace, to: &Namespace, address: IpAddr) {
    let config = BulkConfig {
        connections: 3,
        bytes_per_connection: Some(1_500_000),
        ..BulkConfig::default()
    };
    let report = BulkTransfer::start(from, to, address, &config).unwrap().wait().unwrap();
    assert!(report.is_intact(), "to {address}: {report:?}");
    assert_eq!(report.received_bytes, 4_500_000);
}
