//! The kernel as an oracle: what Linux makes of random bursts and random headers, and what rxo makes of the same.
//!
//! Two TAPs of a private network are asked. One receives by polls and coalesces, as its monitor shows; what is written
//! to the other leaves by a bridge and a TAP without offloads, so the kernel segments it. Where the two differ, the
//! difference is one of a written list ([`gro::Difference`], [`cut::Difference`]), and each of the list is shown to occur.
//!
//! As root: in a user namespace, which this process makes for itself otherwise, `gro_flush_timeout` cannot be set, and
//! only the tests of segmentation pass. Long runs:
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

/// A test: it panics when it fails.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They share two cores with the kernel.
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
