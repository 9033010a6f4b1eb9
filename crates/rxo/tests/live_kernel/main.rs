//! Tests with the kernel as an oracle: compares how Linux and rxo treat random bursts and random headers.
//!
//! The tests use two TAPs of a private network. One receives by polls and coalesces, and a monitor socket
//! shows the result. Frames written to the other leave through a bridge and a TAP without offloads, so the
//! kernel segments them. Where kernel and rxo differ, the difference must be on a written list
//! ([`gro::Difference`], [`cut::Difference`]), and a test shows for each entry of the list that it occurs.
//!
//! The tests run as root. In a user namespace, which this process creates otherwise, `gro_flush_timeout`
//! cannot be set, and only the tests of segmentation pass. Long runs:
//!
//! ```sh
//! RXO_BURSTS=1000000 RXO_SEED=1 cargo test --release -p rxo --test live_kernel -- --ignored --nocapture
//! ```
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod burst;
mod cut;
mod cut_difference;
mod cut_examples;
mod gro;
mod gro_difference;
mod gro_examples;
mod random;
mod whole;
mod world;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A test: its name, and a function that panics when the test fails.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // The tests share two cores with the kernel.
    arguments.test_threads = Some(1);
    if let Err(error) = rxo_testbed::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let short = [gro::TESTS, cut::TESTS].into_iter().flatten().map(|test| trial(test, false));
    let long = random::LONG_TESTS.iter().map(|test| trial(test, true));
    let random = random::TESTS.iter().map(|test| trial(test, false));
    libtest_mimic::run(&arguments, short.chain(random).chain(long).collect()).exit_code()
}

fn trial(&(name, test): &Test, is_long: bool) -> Trial {
    let run = move || {
        test();
        Ok(())
    };
    Trial::test(name, run).with_ignored_flag(is_long)
}
