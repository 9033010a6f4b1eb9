//! Runs live tests that boot guests, one after the other.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use rxo_peers::GuestImage;

/// The name of a test, and what panics if it fails.
pub(crate) type Test = (&'static str, fn());

pub(crate) fn start(tests: &[Test]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    // Names are listed everywhere.
    if !arguments.list {
        // A missing kernel is downloaded, which in a user namespace is not possible.
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
