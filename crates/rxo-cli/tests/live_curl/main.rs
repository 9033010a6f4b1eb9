//! Live tests of `rxo serve` with `curl`: rxo's stack on one side of a private network, Linux with an
//! unmodified client on the other. The process is root, or makes a user namespace for itself.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod crowd;
mod files;
mod server;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A test: its name, and a function that panics on failure.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One test at a time: each shares two cores with the kernel's side of its traffic.
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
