//! `rxo run` with a nic by AF_XDP.

use std::process::Command;

use rxo_testbed::{Lab, LabOptions};
use serde_json::Value;

use crate::Test;
use crate::owed::kill_all;
use crate::process::{Rxo, command, run, wait_until};
use crate::setup::{self, SetUp};
use crate::takeover::{a_nic_that_goes_and_comes, sorted};
use crate::traffic::{transfer, udp_transfer};

pub(crate) const TESTS: &[Test] = &[
    ("xdp_carries_both_ways_whole", both_ways),
    ("xdp_carries_jumbo_frames", jumbo_frames),
    ("xdp_leaves_no_program_when_all_are_killed", killed),
    ("xdp_goes_on_with_a_nic_that_comes_back", || a_nic_that_goes_and_comes("xdp:eth1", "")),
    ("xdp_without_its_privilege_uses_the_ring_and_says_so", without_privilege),
    ("xdp_with_what_cannot_be_is_refused", refused),
];

/// Returns the flags of a set-up, with its nic by AF_XDP.
fn flags(set_up: SetUp) -> String {
    set_up.flags().replace("packet:", "xdp:")
}

fn start(set_up: SetUp, options: LabOptions) -> (Lab, Rxo) {
    let lab = set_up.lab(options);
    let (rxo, first) = Rxo::start(lab.host(), &flags(set_up));
    assert_eq!(first["nic_access"], "AF_XDP, copy mode", "{first}");
    set_up.attach(&lab);
    (lab, rxo)
}

/// Ends the run, and asserts that nothing was lost. Returns the totals.
fn totals(rxo: Rxo) -> Value {
    rxo.signal("TERM");
    let (code, mut lines, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    let totals = lines.pop().unwrap();
    let mut stages = totals["imbalance"].as_object().unwrap().values();
    assert!(stages.all(|frames| *frames == 0), "{totals}");
    for side in ["host_out", "nic_out"] {
        assert_eq!(totals[side]["dropped"], 0, "{totals}");
    }
    totals
}

fn both_ways() {
    for (partial_checksums, set_up) in [(true, SetUp::TakeOver), (false, SetUp::Apart)] {
        let (lab, rxo) = start(set_up, LabOptions { partial_checksums, ..LabOptions::default() });
        transfer(lab.peer(), lab.host(), lab.host_address(), 4, 5_000_000);
        transfer(lab.host(), lab.peer(), lab.peer_address(), 4, 5_000_000);
        udp_transfer(lab.peer(), lab.host(), lab.host_address(), 600);
        udp_transfer(lab.host(), lab.peer(), lab.peer_address(), 600);
        let totals = totals(rxo);
        assert!(totals["nic_in"]["packets"].as_u64().unwrap() > 20_000_000 / 1_448, "{totals}");
        assert!(totals["packets_per_aggregate"].as_f64().unwrap() > 2.0, "{totals}");
        setup::assert_nothing_came_twice(&lab, &totals);
        assert!(!has_program(&lab, set_up), "it is gone with the run");
    }
}

fn jumbo_frames() {
    let (lab, rxo) = start(SetUp::TakeOver, LabOptions { mtu: 9_000, ..LabOptions::default() });
    transfer(lab.peer(), lab.host(), lab.host_address(), 4, 10_000_000);
    transfer(lab.host(), lab.peer(), lab.peer_address(), 4, 10_000_000);
    let totals = totals(rxo);
    let [packets, bytes] = ["packets", "bytes"].map(|it| totals["nic_in"][it].as_u64().unwrap());
    assert!(bytes > 40_000_000 && bytes / packets > 4_096, "{totals}");
}

/// Returns `true` if the nic has an XDP program.
fn has_program(lab: &Lab, set_up: SetUp) -> bool {
    let name = if set_up == SetUp::Apart { "wire0" } else { "eth1" };
    let links = sorted(lab, "ip -o link show");
    let mut lines = links.lines().filter(|line| line.contains(name));
    lines.any(|line| line.contains("xdp"))
}

fn killed() {
    let (lab, rxo) = start(SetUp::Apart, LabOptions::default());
    transfer(lab.peer(), lab.host(), lab.host_address(), 1, 1_000_000);
    assert!(has_program(&lab, SetUp::Apart));
    kill_all(rxo);
    wait_until("the program is gone", || !has_program(&lab, SetUp::Apart));
}

/// Without CAP_BPF and CAP_SYS_ADMIN a process may load no program.
fn without_privilege() {
    let lab = SetUp::Apart.lab(LabOptions::default());
    let of_rxo = command(&format!("run --json {}", flags(SetUp::Apart)));
    let mut limited = Command::new("setpriv");
    limited.args(["--bounding-set", "-bpf,-sys_admin", "--inh-caps", "-bpf,-sys_admin", "--"]);
    limited.arg(of_rxo.get_program()).args(of_rxo.get_args());
    limited.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    limited.stderr(std::process::Stdio::piped());
    let child = lab.host().run(|| limited.spawn()).unwrap().unwrap();
    let (rxo, first) = Rxo::from_child(child).unwrap();
    assert_eq!(first["nic_access"], "packet ring", "{first}");
    SetUp::Apart.attach(&lab);
    transfer(lab.peer(), lab.host(), lab.host_address(), 2, 1_000_000);
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    let line =
        "xdp:wire0 uses the packet ring instead of AF_XDP: it needs CAP_BPF and CAP_NET_ADMIN";
    assert!(said.contains(line), "{said}");
}

fn refused() {
    let lab = SetUp::Apart.lab(LabOptions::default());
    let rows = [
        ("--nic xdp:wire0:1 --host tap:rxo1", "wire0 has no queue 1; it receives in 1"),
        ("--nic xdp:wire0:x --host tap:rxo1", "has a queue that is no number"),
        ("--nic xdp:no0 --host tap:rxo1", "there is no interface `no0`"),
        ("--nic xdp:wire0 --host packet:wire0", "are one interface, `wire0`"),
        ("--nic xdp:wire0 --host tap:rxo1 --workers 2", "xdp:wire0 has one queue; give 1"),
    ];
    for (line, message) in rows {
        let output = run(lab.host(), &format!("run {line}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(message), "{said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
}
