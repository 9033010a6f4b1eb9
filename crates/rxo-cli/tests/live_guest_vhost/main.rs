//! `rxo run --host vhost:PATH` and a real Linux guest behind it, in an emulated machine; either side killed;
//! a guest that reboots; `rxo guest try`. The shortest story of this kind is `live_linux`, which runs in every test.
//!
//! Needs QEMU, busybox and a kernel; `cargo xtask test --guests` runs it. What is missing is an error that
//! names it.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod carried;
mod front_ends;
mod killed;
mod menon;
mod printed;
#[allow(dead_code, reason = "the other live tests use the rest")]
#[path = "../live/process.rs"]
mod process;
mod rebooted;
#[path = "../../../rxo-lab/tests/live_guest/start.rs"]
mod start;
mod trial;
mod xen;

use std::process::ExitCode;

use carried::carried;
use start::{Test, start};

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
    ("the_line_that_rxo_prints_starts_a_guest", printed::the_line_that_rxo_prints_starts_a_guest),
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
