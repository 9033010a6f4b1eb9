//! Interfaces in other network namespaces that are based on the nic, as container networks create them.

use rxo_testbed::{Lab, Namespace};

use super::{end, lab, start, state, succeeds};
use crate::Test;
use crate::process::{Sleeping, run};
use crate::setup::SetUp;
use crate::takeover::shell;

pub(crate) const TESTS: &[Test] =
    &[("hostlife_a_macvlan_in_a_container_is_seen_and_refused", a_macvlan)];

/// The ways to create such an interface: directly in the container, or moved there as Docker's driver does;
/// with or without a process in the container.
const WAYS: [(&str, &str, bool); 3] = [
    ("made there", "ip link add mv0 link eth1 netns PID type macvlan mode bridge", true),
    ("moved there", "ip link add mv0 link eth1 type macvlan && ip link set mv0 netns PID", true),
    (
        "without a process",
        "ip link add mv0 link eth1 type macvlan && ip link set mv0 netns PID",
        false,
    ),
];

fn a_macvlan() {
    for (what, command, has_process) in WAYS {
        let (lab, container) = (lab(), Namespace::new("container").unwrap());
        let process = Sleeping::start(&container);
        shell(&lab, &[&command.replace("PID", &process.id().to_string())]);
        let _process = has_process.then_some(process);
        assert!(succeeds(&container, "ip link set mv0 up"), "{what}");
        is_refused(&lab, what);
        assert!(succeeds(&container, "ip link delete mv0"), "{what}");
        // The other end of the nic's veth is also in another namespace, but is not based on the nic.
        end(start(&lab, true));
    }
}

fn is_refused(lab: &Lab, what: &str) {
    let before = state(lab);
    for flags in ["", " --dry-run"] {
        let output = run(lab.host(), &format!("run {}{flags}", SetUp::TakeOver.flags()));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{what}: {said}");
        assert!(said.contains("`mv0` of another network namespace"), "{what}: {said}");
    }
    assert_eq!(state(lab), before, "{what}");
}
