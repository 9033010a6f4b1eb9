//! Live tests: real networks of the kernel, built and torn down. They run as root, or in a user namespace
//! that this process makes for itself before it has a second thread.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod cleanup;
mod cpu;
mod links;
mod roles;
mod transfer;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Name and function of a test, which panics to fail.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    if let Some(role) = roles::asked_for() {
        return roles::play(&role);
    }
    let mut arguments = Arguments::from_args();
    // The tests share two cores, and some of them measure time.
    arguments.test_threads = Some(1);
    if let Err(error) = rxo_testbed::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let tests = [links::TESTS, transfer::TESTS, cpu::TESTS, cleanup::TESTS];
    let trials = tests.into_iter().flatten().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
