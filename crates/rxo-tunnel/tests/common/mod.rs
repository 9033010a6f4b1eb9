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

/// The bytes of a transfer of [`few_bytes`].
pub(crate) const FEW_BYTES: u64 = 4_500_000;

/// Returns the transfer that tests use: three connections.
pub(crate) fn few_bytes() -> BulkConfig {
    let bytes_per_connection = Some(FEW_BYTES / 3);
    BulkConfig { connections: 3, bytes_per_connection, ..BulkConfig::default() }
}

/// Sends a few bytes, and compares every one.
pub(crate) fn assert_tcp_is_intact(from: &Namespace, to: &Namespace, address: IpAddr) {
    let report = BulkTransfer::start(from, to, address, &few_bytes()).unwrap().wait().unwrap();
    assert!(report.is_intact(), "to {address}: {report:?}");
    assert_eq!(report.received_bytes, FEW_BYTES);
}
