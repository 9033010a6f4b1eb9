//! Changes of the host's network while rxo runs persist after its end.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rxo_testbed::{Lab, LabOptions};

use super::{BOTH, becomes, end, lab, start, state};
use crate::Test;
use crate::at_once::at_once;
use crate::owed::{Place, kill_both};
use crate::process::wait_until;
use crate::setup::{SetUp, await_routes};
use crate::takeover::{PARKED, shell, sorted};

pub(crate) const TESTS: &[Test] = &[
    ("hostlife_what_is_changed_meanwhile_stays_changed", what_is_changed),
    ("hostlife_a_route_comes_back_with_its_next_hop_object", an_object),
    ("hostlife_a_lease_shorter_than_the_run_is_renewed", a_short_lease),
    ("hostlife_a_program_that_knows_the_nic_by_number_reaches_the_tap", by_number),
    ("hostlife_after_a_crash_the_last_state_counts", after_a_crash),
    ("hostlife_a_deleted_tap_takes_nothing_with_it", a_deleted_tap),
];

/// Commands of an operator or a program that use the name of the nic.
const CHANGES: &[&str] = &[
    // A virtual address moves to another host.
    "ip address delete 10.77.0.3/24 dev eth1",
    "ip address add 10.77.0.4/24 dev eth1",
    "ip address add fd77::4/64 dev eth1 nodad",
    "ip route delete 198.51.100.0/24",
    "ip route add 203.0.113.0/24 via 10.77.0.1",
    "ip -6 route add 2001:db8:7::/48 via fd77::1",
    "ip route replace default via 10.77.0.1 dev eth1 metric 7",
    "ip neighbour delete 10.77.0.98 dev eth1",
    "ip neighbour add 10.77.0.99 lladdr 02:00:00:00:00:99 dev eth1 nud permanent",
    "ip rule add iif eth1 lookup 77",
    "ip link set dev eth1 alias office",
    "echo 2 > /proc/sys/net/ipv4/conf/eth1/rp_filter",
    "echo 1 > /proc/sys/net/ipv6/conf/eth1/use_tempaddr",
];

fn with_more() -> Lab {
    let lab = lab();
    shell(
        &lab,
        &[
            "ip address add 10.77.0.3/24 dev eth1",
            "ip route add 198.51.100.0/24 via 10.77.0.1",
            "ip neighbour add 10.77.0.98 lladdr 02:00:00:00:00:98 dev eth1 nud permanent",
        ],
    );
    lab
}

/// Returns the state without the hardware addresses of this lab, so that it can be compared with another
/// lab's.
fn anonymous(lab: &Lab) -> Vec<String> {
    let mac =
        lab.host().interface(Lab::NIC).mac().unwrap().map(|byte| format!("{byte:02x}")).join(":");
    let link_local = sorted(lab, "ip -6 -o address show dev eth1 scope link");
    let link_local = link_local.split_whitespace().nth(3).unwrap_or_default();
    let link_local = link_local.trim_end_matches("/64").to_owned();
    let anonymous = |line: String| line.replace(&mac, "MAC").replace(&link_local, "LINK-LOCAL");
    state(lab).into_iter().map(anonymous).collect()
}

fn what_is_changed() {
    let without = with_more();
    shell(&without, CHANGES);
    await_routes(&without);
    let lab = with_more();
    let rxo = start(&lab, true);
    shell(&lab, CHANGES);
    end(rxo);
    await_routes(&lab);
    let (expected, found) = (anonymous(&without), anonymous(&lab));
    for line in &expected {
        assert!(found.contains(line), "'{line}' is not in {found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}\n{expected:#?}");
}

/// A next hop object belongs to the nic, and must stay on the nic.
fn an_object() {
    let lab = lab();
    shell(
        &lab,
        &[
            "ip nexthop add id 7 via 10.77.0.1 dev eth1",
            "ip route add 198.51.102.0/24 nhid 7",
            "ip route add 198.51.103.0/24 nhid 7",
        ],
    );
    let before = state(&lab);
    let rxo = start(&lab, true);
    let route = sorted(&lab, "ip route show 198.51.102.0/24");
    assert!(route.contains("via 10.77.0.1 dev eth1") && !route.contains("nhid"), "{route}");
    // The same must hold after the record has been rewritten.
    shell(&lab, &["ip address add 10.77.0.9/24 dev eth1"]);
    thread::sleep(Duration::from_millis(500));
    shell(&lab, &["ip address delete 10.77.0.9/24 dev eth1"]);
    end(rxo);
    becomes(&lab, &before, "with an object");
}

/// A DHCP client renews the address repeatedly, each time for a short lease.
fn a_short_lease() {
    const RENEW: &str = "ip address replace 10.77.0.50/24 dev eth1 valid_lft 5 preferred_lft 5";
    at_once(BOTH, |takes_part| {
        let lab = lab();
        shell(&lab, &[RENEW]);
        let has = || sorted(&lab, "ip -o address show dev eth1").contains("10.77.0.50");
        let before = state(&lab);
        let rxo = start(&lab, takes_part);
        // Waits longer than the first lease.
        for _ in 0..12 {
            shell(&lab, &[RENEW]);
            thread::sleep(Duration::from_millis(500));
        }
        end(rxo);
        shell(&lab, &[RENEW]);
        becomes(&lab, &before, &format!("with rxo: {takes_part}"));
        wait_until("a lease that nobody renews ends", || !has());
    });
}

/// Programs may keep the interface's index, which is that of the nic.
fn by_number() {
    let lab = lab();
    let rxo = start(&lab, true);
    shell(
        &lab,
        &[&format!("ip address add 10.77.0.60/24 dev {PARKED} valid_lft 700 preferred_lft 600")],
    );
    let on = |device: &str| {
        sorted(&lab, &format!("ip -o address show dev {device}")).contains("10.77.0.60")
    };
    wait_until("the TAP has it", || on("eth1") && !on(PARKED));
    let renew =
        format!("ip address add 10.77.0.60/24 dev {PARKED} valid_lft 9000 preferred_lft 9000");
    shell(&lab, &[&renew]);
    let is_renewed = || sorted(&lab, "ip -o address show dev eth1").contains("valid_lft 89");
    wait_until("the TAP has the new lease", is_renewed);
    end(rxo);
    assert!(on("eth1"));
}

/// The restored state is the TAP's last state, not the nic's initial state.
fn after_a_crash() {
    let (lab, place) = (with_more(), Place::new());
    let without = with_more();
    // Rules are never moved, and settings are not recorded.
    let changes = &CHANGES[..9];
    shell(&without, changes);
    let rxo = place.start(&lab, "");
    let file = place.file();
    let before = fs::read_to_string(&file).unwrap();
    shell(&lab, changes);
    let count = |text: &str| text.lines().filter(|line| line.starts_with("route")).count();
    wait_until("the changes are recorded", || {
        let text = fs::read_to_string(&file).unwrap();
        text != before && count(&text) > count(&before)
    });
    kill_both(&lab, rxo);
    place.restore(&lab);
    for command in [
        "ip -o address show dev eth1",
        "ip route show",
        "ip -6 route show",
        "ip neighbour show nud permanent",
    ] {
        let read = |lab| sorted(lab, command).replace("SECONDS", "");
        let is_link_local = |line: &&str| !line.contains("fe80");
        let lines = |text: String| {
            text.lines().filter(is_link_local).map(str::to_owned).collect::<Vec<_>>()
        };
        let index =
            |line: String| line.split_once(": ").map_or(line.clone(), |(_, rest)| rest.to_owned());
        let both =
            [&without, &lab].map(|lab| lines(read(lab)).into_iter().map(index).collect::<Vec<_>>());
        assert_eq!(both[0], both[1], "{command}");
    }
    assert_eq!(place.file_count(), 0);
}

/// Deleting the TAP ends the run, but the host keeps its configuration.
fn a_deleted_tap() {
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    let before = state(&lab);
    let rxo = start(&lab, true).unwrap();
    lab.host().interface("rxo0").delete().unwrap();
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(1), "{said}");
    becomes(&lab, &before, "afterwards");
    assert!(!Path::new("/sys/class/net/rxo0").exists());
}
