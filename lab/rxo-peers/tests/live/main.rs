//! Live tests: peers of our own in private networks. As root, or in a user namespace that this process makes for itself
//! before it has a second thread.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod counting;
mod shared_link;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Name and function of a test, which panics to fail.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They share two cores, and some of them measure.
    arguments.test_threads = Some(1);
    if let Err(error) = rxo_testbed::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let tests = [counting::TESTS, shared_link::TESTS];
    let trials = tests.into_iter().flatten().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
