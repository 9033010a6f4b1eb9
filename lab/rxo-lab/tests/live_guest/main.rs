//! Experiments and trials with real Linux guests in emulated machines.
//!
//! Needs QEMU, busybox and a kernel; `cargo xtask test --guests` runs it. A missing program is an error with
//! its name.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod menon;
#[allow(dead_code, reason = "the tests of the command use the rest")]
#[path = "../../../../crates/rxo-cli/tests/live/process.rs"]
mod process;
#[path = "../../../rxo-peers/tests/live_guest/start.rs"]
mod start;
mod trial;
mod xen;

use std::process::ExitCode;

use start::{Test, start};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_rxo-lab");

const TESTS: &[Test] = &[
    ("a_linux_guest_gains_by_aggregates", menon::a_linux_guest_gains_by_aggregates),
    ("the_xen_experiment_counts_a_guest", xen::the_experiment_counts_a_guest),
    ("the_xen_experiment_has_several_guests", xen::the_experiment_has_several_guests),
    ("the_xen_experiment_names_what_is_missing", xen::the_experiment_names_what_is_missing),
    (
        "two_linux_guests_get_a_file_and_send_it_back",
        trial::two_linux_guests_get_a_file_and_send_it_back,
    ),
    (
        "a_number_of_guests_out_of_range_is_one_line",
        trial::a_number_of_guests_out_of_range_is_one_line,
    ),
];

fn main() -> ExitCode {
    start(TESTS)
}
