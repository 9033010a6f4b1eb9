//! The output during a run, the end of the run, and the state of the host after it.

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Lab, Offload};
use serde_json::Value;

use crate::Test;
use crate::process::{Rxo, wait_until};

pub(crate) const TESTS: &[Test] = &[
    ("every_line_is_json_and_the_last_has_the_totals", every_line_is_json),
    ("a_signal_ends_it_and_puts_the_interfaces_back", a_signal_ends_it),
    ("killed_half_way_it_leaves_no_interface", killed_half_way),
    ("a_device_that_vanishes_ends_it_with_one_line", a_device_that_vanishes),
    ("a_link_that_goes_down_is_waited_for", a_link_that_goes_down),
];

const FLAGS: &str = "--nic packet:wire0 --host tap:rxo0 --stats 100ms";

/// Starts rxo and an endless transfer through it.
fn busy(lab: &Lab) -> (Rxo, BulkTransfer) {
    let (rxo, _) = Rxo::start(lab.host(), FLAGS);
    lab.attach_host("rxo0").unwrap();
    let config = BulkConfig { connections: 2, ..BulkConfig::default() };
    let transfer =
        BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    wait_until("bytes arrive", || transfer.received_bytes() > 10_000_000);
    (rxo, transfer)
}

fn every_line_is_json() {
    let lab = Lab::through().unwrap();
    let (mut rxo, transfer) = busy(&lab);
    let mut seen: Vec<Value> = (0..3).map(|_| rxo.next()).collect();
    assert!(transfer.stop().unwrap().is_intact());
    rxo.signal("INT");
    let (code, rest, said) = rxo.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    seen.extend(rest);
    let totals = seen.pop().unwrap();
    assert_eq!(totals["kind"], "totals");
    assert!(seen.iter().all(|line| line["kind"] == "interval"));
    let sum = |side: &str, count: &str| -> u64 {
        seen.iter().map(|line| line[side][count].as_u64().unwrap()).sum()
    };
    // Packets after the last interval appear only in the totals.
    let packets = totals["nic_in"]["packets"].as_u64().unwrap();
    // More than 10 MB in segments of 1,448 bytes.
    assert!(packets > 6_900 && sum("nic_in", "packets") <= packets, "{totals}");
    assert!(sum("host_out", "deliveries") <= totals["host_out"]["deliveries"].as_u64().unwrap());
    assert!(seen.iter().any(|line| line["cpu_percent"].as_f64().unwrap() > 0.0));
}

fn a_signal_ends_it() {
    for signal in ["INT", "TERM", "HUP"] {
        let lab = Lab::through().unwrap();
        let wire = lab.host().interface(Lab::WIRE_INTERFACE);
        wire.set_offload(Offload::GenericReceive, true).unwrap();
        let (rxo, transfer) = busy(&lab);
        assert!(!wire.offload(Offload::GenericReceive).unwrap(), "the kernel coalesces before us");
        rxo.signal(signal);
        let (code, lines, said) = rxo.end();
        assert_eq!((code, said.as_str()), (Some(0), ""), "{signal}");
        assert_eq!(lines.last().unwrap()["kind"], "totals", "{signal}");
        assert!(!lab.host().interface("rxo0").exists(), "{signal}");
        assert!(wire.offload(Offload::GenericReceive).unwrap(), "{signal}");
        drop(transfer);
    }
}

fn killed_half_way() {
    let lab = Lab::through().unwrap();
    let (rxo, transfer) = busy(&lab);
    rxo.signal("KILL");
    let (code, _, _) = rxo.end();
    assert_eq!(code, None);
    wait_until("the TAP is gone", || !lab.host().interface("rxo0").exists());
    drop(transfer);
    // The next run finds the same state as the first.
    let (rxo, _) = Rxo::start(lab.host(), FLAGS);
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
}

fn a_device_that_vanishes() {
    for gone in [Lab::WIRE_INTERFACE, "rxo0"] {
        let lab = Lab::through().unwrap();
        let (rxo, transfer) = busy(&lab);
        lab.host().interface(gone).delete().unwrap();
        let (code, lines, said) = rxo.end();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(" error packet:wire0: ") && said.lines().count() == 1, "{said}");
        // The kernel takes an interface down before it removes it, and rxo may see either first.
        let told = said.contains("gone away") || said.contains("is down");
        assert!(said.contains(gone) && told, "{said}");
        assert_eq!(lines.last().unwrap()["kind"], "totals");
        assert!(!lab.host().interface("rxo0").exists());
        drop(transfer);
    }
}

/// An interface that is down still exists: rxo reports it once, waits, and continues the same connections
/// when it is up again.
fn a_link_that_goes_down() {
    for name in [Lab::WIRE_INTERFACE, "rxo0"] {
        let lab = Lab::through().unwrap();
        let (mut rxo, transfer) = busy(&lab);
        let link = lab.host().interface(name);
        link.down().unwrap();
        while rxo.next()["kind"] != "notice" {}
        link.up().unwrap();
        let carried = transfer.received_bytes();
        wait_until("bytes arrive again", || transfer.received_bytes() > carried + 1_000_000);
        while rxo.next()["kind"] != "notice" {}
        assert!(transfer.stop().unwrap().is_intact());
        rxo.signal("TERM");
        let (code, lines, said) = rxo.end();
        assert_eq!(code, Some(0), "{name}: {said}");
        let said: Vec<_> = said.lines().collect();
        assert_eq!(said.len(), 2, "{name}: {said:?}");
        assert!(said[0].contains(&format!("{name} is down; waiting")), "{said:?}");
        assert!(said[1].contains(&format!("{name} is up again")), "{said:?}");
        assert_eq!(lines.last().unwrap()["kind"], "totals");
    }
}
