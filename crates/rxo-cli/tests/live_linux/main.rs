//! A real Linux guest behind `rxo run --host vhost:PATH`, in an emulated machine: the only test of guests in
//! every CI run. It takes some seconds.
//!
//! Needs QEMU, busybox and a kernel. A missing program is an error with its name.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

#[path = "../live_guest_vhost/carried.rs"]
mod carried;
#[allow(dead_code, reason = "the other live tests use the rest")]
#[path = "../live/process.rs"]
mod process;
#[path = "../../../../lab/rxo-peers/tests/live_guest/start.rs"]
mod start;

use std::process::ExitCode;

use carried::carried;
use start::{Test, start};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_rxo");

const TESTS: &[Test] = &[("a_hashed_file_crosses_rxo_into_a_linux_guest_and_back", || carried(""))];

fn main() -> ExitCode {
    start(TESTS)
}
