//! Live tests of the link of a host: neighbours, echo, and paths with small links, against Linux hosts,
//! routers and bridges in private networks. They run as root, or in a user namespace that this process
//! creates for itself before it has a second thread.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod network;
mod path;
mod ping;

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
    let trials = [path::TESTS, ping::TESTS].into_iter().flatten().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
