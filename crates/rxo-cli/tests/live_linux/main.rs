//! A real Linux guest behind `rxo run --host vhost:PATH`, in an emulated machine: the one story of guests
//! that is part of every test. It takes some seconds.
//!
//! Needs QEMU, busybox and a kernel. What is missing is an error that names it.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

#[path = "../live_guest_vhost/carried.rs"]
mod carried;
#[allow(dead_code, reason = "the other live tests use the rest")]
#[path = "../live/process.rs"]
mod process;

use std::process::ExitCode;

use carried::carried;
use libtest_mimic::{Arguments, Trial};
use rxo_lab::GuestImage;

const TESTS: &[(&str, fn())] =
    &[("a_hashed_file_crosses_rxo_into_a_linux_guest_and_back", || carried(""))];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    // A missing kernel is downloaded, which in a user namespace is not possible.
    if let Err(error) = GuestImage::find() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    if let Err(error) = rxo_lab::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let trials = TESTS.iter().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
