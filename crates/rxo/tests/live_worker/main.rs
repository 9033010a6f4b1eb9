//! Live tests of Linux TCP through a worker between a wire and a TAP, in private networks. They run as root,
//! or in a user namespace that this process creates for itself before it has a second thread. Where it has no
//! right to create one, the tests fail: a machine on which they cannot run proves nothing.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod blocked;
mod calls;
mod capture;
mod path;
mod splitting;
mod tasks;
mod transfers;
mod workers;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A test: its name, and a function that panics when the test fails.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // The tests share two cores.
    arguments.test_threads = Some(1);
    if let Err(error) = rxo_testbed::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let groups = [
        transfers::TESTS,
        splitting::TESTS,
        blocked::TESTS,
        calls::TESTS,
        workers::TESTS,
        tasks::TESTS,
    ];
    let trials = groups.into_iter().flatten().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
