//! Live tests: a host with its own TCP against Linux, in private networks. As root, or in a user
//! namespace that this process makes for itself before it has a second thread. Where that cannot be
//! had they fail: a machine on which they cannot run proves nothing.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod bad_network;
mod conflicts;
mod first;
mod matrix;
mod network;
mod shards;
mod streams;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A test: it panics when it fails.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They share two cores.
    arguments.test_threads = Some(1);
    if let Err(error) = rxo_testbed::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let all = first::TESTS.iter().chain(matrix::TESTS).chain(shards::TESTS).chain(conflicts::TESTS);
    let trials = all.map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
