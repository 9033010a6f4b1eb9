//! Errors that the system returns: each gives one line and the right exit code, and leaves nothing behind.

use rxo_testbed::{Lab, LabOptions, Namespace, create_veth};

use crate::Test;
use crate::process::{Rxo, run};

pub(crate) const TESTS: &[Test] = &[
    ("an_interface_that_is_down", an_interface_that_is_down),
    ("a_tap_name_that_is_taken", a_tap_name_that_is_taken),
    ("mtus_that_differ", mtus_that_differ),
    ("an_mtu_that_a_tap_cannot_have", an_mtu_that_a_tap_cannot_have),
    ("a_nic_that_has_an_address", a_nic_that_has_an_address),
    ("a_nic_that_belongs_to_something_else", a_nic_that_belongs_to_something_else),
    ("loopback_is_no_nic", loopback_is_no_nic),
];

/// Runs `rxo run` with `flags`, which must exit with `code`, print one line with all `parts`, and leave no
/// TAP.
fn fails(namespace: &Namespace, flags: &str, code: i32, parts: &[&str]) {
    let output = run(namespace, &format!("run {flags}"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{flags}: {said}");
    // Errors found while devices are opened are in the log format.
    let is_ours = said.starts_with("rxo: ") || said.contains("Z error packet:");
    assert!(is_ours && said.lines().count() == 1, "{flags}: {said}");
    // A dry run also shows the other findings.
    let found = String::from_utf8(output.stdout).unwrap();
    assert!(
        found.is_empty() || flags.ends_with("--dry-run") && found.contains(" breaks "),
        "{flags}"
    );
    for part in parts {
        assert!(said.contains(part), "{flags}: '{part}' is not in: {said}");
    }
}

fn an_interface_that_is_down() {
    let lab = Lab::through().unwrap();
    lab.host().interface(Lab::WIRE_INTERFACE).down().unwrap();
    for dry in ["", "--dry-run"] {
        let flags = format!("--nic packet:wire0 --host tap:rxo0 {dry}");
        fails(lab.host(), &flags, 1, &["packet:wire0 is down", "ip link set wire0 up"]);
    }
    assert!(!lab.host().interface("rxo0").exists());
}

fn a_tap_name_that_is_taken() {
    let lab = Lab::through().unwrap();
    let other = lab.host().interface("other0");
    create_veth(&other, &lab.host().interface("other1")).unwrap();
    fails(
        lab.host(),
        "--nic packet:wire0 --host tap:other0",
        1,
        &["tap:other0", "another kind", "another name"],
    );
    assert!(other.exists());

    let (rxo, _) = Rxo::start(lab.host(), "--nic packet:wire0 --host tap:rxo0");
    create_veth(&lab.host().interface("more0"), &lab.host().interface("more1")).unwrap();
    ["more0", "more1"].iter().for_each(|name| lab.host().interface(name).up().unwrap());
    fails(
        lab.host(),
        "--nic packet:more0 --host tap:rxo0",
        1,
        &["tap:rxo0", "another program", "another name"],
    );
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
}

fn mtus_that_differ() {
    let lab = Lab::through().unwrap();
    let (inner, outer) = (lab.host().interface("inner0"), lab.host().interface("outer0"));
    create_veth(&inner, &outer).unwrap();
    inner.up().unwrap();
    outer.up().unwrap();
    outer.set_mtu(1400).unwrap();
    fails(
        lab.host(),
        "--nic packet:wire0 --host packet:outer0",
        1,
        &["packet:wire0 has 1500", "packet:outer0 has 1400", "ip link set outer0 mtu 1500"],
    );
}

fn an_mtu_that_a_tap_cannot_have() {
    let namespace = Namespace::new("large").unwrap();
    let (near, far) = (namespace.interface("near0"), namespace.interface("far0"));
    create_veth(&near, &far).unwrap();
    near.set_mtu(65_535).unwrap();
    near.up().unwrap();
    fails(&namespace, "--nic packet:near0 --host tap:rxo0", 2, &["tap:rxo0", "65535", "65521"]);
    assert!(!namespace.interface("rxo0").exists());
}

fn a_nic_that_has_an_address() {
    let lab = Lab::with_addressed_nic(LabOptions::default()).unwrap();
    for dry in ["", "--dry-run"] {
        let parts = ["`eth1` has the address 10.77.0.2/24", "--take-over"];
        fails(lab.host(), &format!("--nic packet:eth1 --host tap:rxo0 {dry}"), 2, &parts);
    }
    // The link-local address that the kernel gives every IPv6 interface does not count.
    let lab = Lab::with_bare_nic(LabOptions::default()).unwrap();
    let (rxo, _) = Rxo::start(lab.host(), "--nic packet:eth1 --host tap:rxo0");
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
}

fn a_nic_that_belongs_to_something_else() {
    let lab = Lab::with_bare_nic(LabOptions::default()).unwrap();
    let nic = lab.host().interface("eth1");
    for flags in ["", "--take-over"] {
        let flags = format!("--nic packet:eth1 --host tap:rxo0 {flags}");
        let upper = lab.host().interface("upper0");
        upper.create_macvlan(&nic).unwrap();
        fails(lab.host(), &flags, 2, &["`upper0` is made of `eth1`", "ip link delete upper0"]);
        upper.delete().unwrap();
        let bridge = lab.host().interface("br0");
        bridge.create_bridge().unwrap();
        nic.join_bridge(&bridge).unwrap();
        fails(lab.host(), &flags, 2, &["`eth1` is part of `br0`", "ip link set eth1 nomaster"]);
        bridge.delete().unwrap();
    }
}

fn loopback_is_no_nic() {
    let namespace = Namespace::new("loopback").unwrap();
    for flags in ["", "--take-over"] {
        let flags = format!("--nic packet:lo --host tap:rxo0 {flags}");
        fails(&namespace, &flags, 2, &["`lo` is loopback", "give a nic"]);
    }
}
