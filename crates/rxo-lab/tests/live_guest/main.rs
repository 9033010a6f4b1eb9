//! Guests: a real Linux behind a virtio card, in an emulated machine.
//!
//! They need QEMU, busybox and a kernel. `cargo xtask test --guests` runs them too; what is missing is an
//! error that names it.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod count;
mod tap;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    // Before the user namespace, whose root cannot download a kernel: apt changes its user to do so.
    if let Err(error) = rxo_lab::GuestImage::find() {
        eprintln!("guests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    if let Err(error) = rxo_lab::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let trials = tap::TESTS.iter().chain(count::TESTS).map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
