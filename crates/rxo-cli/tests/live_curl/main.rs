//! Live tests of `rxo serve` beside `curl`: rxo's own stack on one side of a private network, Linux
//! with an unmodified client on the other. As root, or in a user namespace of this process's own.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod crowd;
mod files;
mod server;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A test: it panics when it fails.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // They share two cores with the kernel's side of the traffic.
    arguments.test_threads = Some(1);
    if let Err(error) = rxo_testbed::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let trials = [files::TESTS, crowd::TESTS].into_iter().flatten().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
