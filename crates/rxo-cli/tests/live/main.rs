//! Live tests of the command: real interfaces and real TCP in private networks. The process is root, or makes
//! a user namespace for itself before it starts a second thread.
//!
//! Long tests are marked as ignored: `cargo xtask test --all` runs them, and so does `--include-ignored`.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod at_once;
mod bad_input;
mod calibrate;
mod card;
mod cast;
mod cat;
mod coalesce;
mod conformance;
mod control;
mod demo;
mod doctor;
mod ending;
mod endpoint;
mod fast_path;
mod guests;
mod hostile;
mod hostlife;
mod instants;
mod isolation;
mod kernel_udp;
mod losses;
mod manager;
mod marks;
mod metrics;
mod offline;
mod output;
mod overlay;
mod overlay_merge;
mod owed;
mod pausing;
mod predicted_cores;
mod prediction;
mod privileges;
mod process;
mod readme;
mod reload;
mod report;
mod sending;
mod setup;
mod shards;
mod switch;
mod switch_vlan;
mod switch_workers;
mod takeover;
mod traffic;
mod unit;
mod upgrade;
mod watching;
mod workers;
mod xdp;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use signal_hook::consts::SIGHUP;
use signal_hook::flag;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_rxo");

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
    // Under `nohup` SIGHUP is ignored, and child processes inherit that; they do not inherit a handler.
    if let Err(error) = flag::register(SIGHUP, Arc::default()) {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let long = [
        hostlife::LONG_TESTS,
        instants::LONG_TESTS,
        kernel_udp::LONG_TESTS,
        losses::LONG_TESTS,
        overlay::LONG_TESTS,
        predicted_cores::LONG_TESTS,
        prediction::long_tests(),
        readme::LONG_TESTS,
        unit::LONG_TESTS,
        upgrade::LONG_TESTS,
    ];
    let short = short_tests().map(|test| trial(test, false));
    let long = long.into_iter().flatten().map(|test| trial(test, true));
    libtest_mimic::run(&arguments, short.chain(long).collect()).exit_code()
}

/// The tests that always run.
fn short_tests() -> impl Iterator<Item = &'static Test> {
    let groups = [
        bad_input::TESTS,
        calibrate::TESTS,
        card::TESTS,
        cast::TESTS,
        cat::TESTS,
        coalesce::TESTS,
        conformance::TESTS,
        control::TESTS,
        demo::TESTS,
        doctor::TESTS,
        ending::TESTS,
        endpoint::TESTS,
        fast_path::TESTS,
        guests::TESTS,
        hostile::TESTS,
        isolation::TESTS,
        kernel_udp::TESTS,
        losses::TESTS,
        marks::TESTS,
        metrics::TESTS,
        offline::TESTS,
        output::TESTS,
        overlay::TESTS,
        overlay_merge::TESTS,
        owed::TESTS,
        pausing::TESTS,
        readme::TESTS,
        reload::TESTS,
        prediction::TESTS,
        privileges::TESTS,
        sending::TESTS,
        shards::TESTS,
        switch::TESTS,
        switch_vlan::TESTS,
        switch_workers::TESTS,
        takeover::TESTS,
        traffic::TESTS,
        upgrade::TESTS,
        watching::TESTS,
        workers::TESTS,
        xdp::TESTS,
    ];
    groups.into_iter().flatten().chain(hostlife::tests())
}

fn trial(&(name, test): &Test, is_long: bool) -> Trial {
    let run = move || {
        test();
        Ok(())
    };
    Trial::test(name, run).with_ignored_flag(is_long)
}
