//! Runs live tests that boot guests, in sequence.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use rxo_peers::GuestImage;

/// A test: its name, and the function that panics if it fails.
pub(crate) type Test = (&'static str, fn());

pub(crate) fn start(tests: &[Test]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    // Listing the names must work on any machine.
    if !arguments.list {
        // A missing kernel is downloaded first, because that is impossible in a user namespace.
        let ready = GuestImage::find().and_then(|_| rxo_testbed::become_root_in_user_namespace());
        if let Err(error) = ready {
            eprintln!("live tests cannot run: {error}");
            return ExitCode::FAILURE;
        }
    }
    let trials = tests.iter().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
