//! Live tests on real interfaces of private networks. They run as root, or in a user namespace that this
//! process creates for itself before it has a second thread. Where it has no right to create one, the tests
//! fail: a machine on which they cannot run proves nothing.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod adopted;
mod fanout;
mod forward;
mod locks;
mod network;
mod packet_faults;
mod packet_sink;
mod packet_source;
mod packets;
mod tap;
mod tap_order;
mod tap_queues;
mod udp;
mod udp_adopted;
mod xdp;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A test: its name, and a function that panics when the test fails.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if let Err(error) = rxo_testbed::become_root_in_user_namespace() {
        eprintln!("live tests cannot run: {error}");
        return ExitCode::FAILURE;
    }
    let groups = [
        packet_source::TESTS,
        packet_faults::TESTS,
        fanout::TESTS,
        packet_sink::TESTS,
        tap::TESTS,
        adopted::TESTS,
        tap_order::TESTS,
        forward::TESTS,
        udp::TESTS,
        udp_adopted::TESTS,
        if locks::can_run() { xdp::TESTS } else { &[] },
        if locks::can_run() { locks::TESTS } else { &[] },
        if locks::can_run() { tap_queues::TESTS } else { &[] },
    ];
    let trials = groups.into_iter().flatten().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
