//! `rxo run --host vhost:PATH` and a real Linux guest behind it, in an emulated machine; either side killed;
//! a guest that reboots. The shortest test of this kind is `live_linux`, which runs in CI.
//!
//! Needs QEMU, busybox and a kernel; `cargo xtask test --guests` runs it. A missing program is an error with
//! its name.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod carried;
mod front_ends;
mod killed;
mod migrated;
mod printed;
#[allow(dead_code, reason = "the other live tests use the rest")]
#[path = "../live/process.rs"]
mod process;
mod rebooted;
#[path = "../../../../lab/rxo-peers/tests/live_guest/start.rs"]
mod start;

use std::process::ExitCode;

use carried::carried;
use start::{Test, start};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_rxo");

const TESTS: &[Test] = &[
    ("adaptive_hold_carries_a_file_into_a_linux_guest_and_back", || carried("--hold auto")),
    ("packed_rings_carry_a_file", front_ends::packed_rings),
    ("several_queues_carry_a_file", front_ends::several_queues),
    ("single_chains_of_buffers_carry_a_file", front_ends::no_mergeable_buffers),
    ("a_transfer_survives_rxo_being_killed", killed::a_transfer_survives_rxo_being_killed),
    (
        "the_next_guest_is_served_after_qemu_was_killed",
        killed::the_next_guest_is_served_after_qemu_was_killed,
    ),
    ("a_guest_reboots_while_another_receives", rebooted::a_guest_reboots_while_another_receives),
    ("a_guest_is_migrated_under_load", migrated::a_guest_is_migrated_under_load),
    ("the_line_that_rxo_prints_starts_a_guest", printed::the_line_that_rxo_prints_starts_a_guest),
];

fn main() -> ExitCode {
    start(TESTS)
}
