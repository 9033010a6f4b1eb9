//! `rxo doctor`: its findings about a machine and a nic; the checks must change nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use rxo_testbed::{Lab, Namespace};
use serde_json::Value;

use crate::Test;
use crate::control::socket::copied_command;
use crate::hostlife::rules::nft;
use crate::hostlife::{lab, state};
use crate::owed::{Place, kill_both};
use crate::process::{Rxo, Sleeping, command, run};
use crate::report::Scratch;
use crate::setup::SetUp;
use crate::takeover::shell;

pub(crate) const TESTS: &[Test] = &[
    ("a_doctor_finds_a_machine_that_is_fine", fine),
    ("a_doctor_names_what_would_break_and_a_dry_run_names_it_too", broken),
    ("a_doctor_names_every_fault_at_once", all_at_once),
    ("a_doctor_says_what_it_may_not_look_at", unprivileged),
    ("a_doctor_without_the_nic_says_so_in_one_line", absent),
    ("a_doctor_names_what_a_killed_run_left", left),
    ("a_doctor_names_another_run_on_the_nic", in_use),
];

/// All checks with `--nic`.
const CHECKS: [&str; 29] = [
    "kernel",
    "cores",
    "capabilities",
    "TUN",
    "TUN offloads",
    "virtio header",
    "packet ring",
    "packet queues",
    "io_uring",
    "AF_XDP",
    "isolation",
    "locks",
    "records",
    "driver",
    "state",
    "speed",
    "MTU",
    "queues",
    "GRO",
    "LRO",
    "checksums",
    "place",
    "containers",
    "addresses",
    "name",
    "rules",
    "carrier",
    "bound sockets",
    "other run",
];

/// The findings of a report.
struct Findings(Value);

impl Findings {
    fn of(output: &Output) -> Self {
        let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
        Self(report["findings"].take())
    }

    fn all(&self) -> &[Value] {
        self.0.as_array().unwrap()
    }

    fn one(&self, name: &str) -> &Value {
        self.all()
            .iter()
            .find(|one| one["name"] == name)
            .unwrap_or_else(|| panic!("no {name}: {}", self.0))
    }

    fn state(&self, name: &str) -> &str {
        self.one(name)["state"].as_str().unwrap()
    }

    fn names_in(&self, state: &str) -> Vec<&str> {
        let all = self.all().iter().filter(|one| one["state"] == state);
        all.map(|one| one["name"].as_str().unwrap()).collect()
    }
}

fn doctor(namespace: &Namespace, flags: &str) -> (Option<i32>, Findings, String) {
    let output = run(namespace, &format!("doctor --json {flags}"));
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    (output.status.code(), Findings::of(&output), said)
}

fn fine() {
    let lab = lab();
    let before = state(&lab);
    let (code, found, said) = doctor(lab.host(), "--nic eth1");
    let names: Vec<_> = found.all().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, [&CHECKS[..], &["record"]].concat());
    assert_eq!(found.names_in("breaks"), [""; 0], "{}", found.0);
    // A process of the machine may hide its network even from root.
    let hidden = found.names_in("not run");
    assert!(hidden.is_empty() || hidden == ["containers"], "{}", found.0);
    assert_eq!(code, Some(if hidden.is_empty() { 0 } else { 3 }), "{said}");
    for (name, part) in [
        ("driver", "veth"),
        ("state", "up"),
        ("MTU", "1500"),
        ("TUN offloads", "TSO"),
        ("addresses", "addresses and"),
        ("name", "eth1-nic"),
        ("carrier", "on"),
    ] {
        let text = found.one(name)["found"].as_str().unwrap();
        assert!(text.contains(part), "{name}: {text}");
    }
    // The table has a line for each check, and one above them.
    let text = String::from_utf8(run(lab.host(), "doctor --nic packet:eth1").stdout).unwrap();
    assert_eq!(text.lines().count(), CHECKS.len() + 2, "{text}");
    let (_, of_machine, _) = doctor(lab.host(), "");
    assert_eq!(of_machine.all().len(), 13, "{}", of_machine.0);
    assert_eq!(state(&lab), before, "something is left");
    // A nic reported as fine can be used.
    let (rxo, _) = Rxo::start(lab.host(), SetUp::TakeOver.flags());
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
}

/// Changes of the machine, each with the check that must detect it.
fn broken() {
    let container = Namespace::new("container").unwrap();
    let sleep = Sleeping::start(&container);
    let macvlan =
        format!("ip link add mv0 link eth1 netns {} type macvlan mode bridge", sleep.id());
    let rows: [(&[&str], &str, &str); 5] = [
        (
            &["nft add table ip t", "nft add chain ip t c", "nft add rule ip t c iif eth1 accept"],
            "rules",
            "of `ip t c`",
        ),
        (
            &[
                "tc qdisc add dev eth1 ingress",
                "tc filter add dev eth1 parent ffff: protocol ip prio 7 u32 match u32 0 0 flowid 1:1",
            ],
            "rules",
            "`tc filter` 7",
        ),
        (&["ip link add br0 type bridge", "ip link set eth1 master br0"], "place", "part of `br0`"),
        (&["ip link add mv1 link eth1 type macvlan"], "place", "`mv1` is made of"),
        (&[&macvlan], "containers", "`mv0` of another network"),
    ];
    for (commands, name, part) in rows {
        let lab = lab();
        shell(&lab, commands);
        let before = state(&lab);
        let (code, found, said) = doctor(lab.host(), "--nic eth1");
        assert_eq!((code, found.names_in("breaks")), (Some(4), vec![name]), "{}", found.0);
        assert!(said.lines().count() == 1 && said.contains(name), "{said}");
        let one = found.one(name).clone();
        let (text, remedy) = (one["found"].as_str().unwrap(), one["remedy"].as_str().unwrap());
        assert!(text.contains(part) && !remedy.is_empty(), "{one}");
        // The dry run reports the same finding, and fails like the run.
        let dry = run(lab.host(), &format!("run {} --dry-run --json", SetUp::TakeOver.flags()));
        let report: Value = serde_json::from_slice(&dry.stdout).unwrap();
        assert_eq!(report["kind"], "refused");
        assert_eq!(*Findings::of(&dry).one(name), one);
        let real = run(lab.host(), &format!("run {}", SetUp::TakeOver.flags()));
        assert_eq!((dry.status.code(), &dry.stderr), (Some(2), &real.stderr));
        let line = String::from_utf8(real.stderr).unwrap();
        assert_eq!(line, format!("rxo: --nic packet:eth1: {text}; {remedy}\n"));
        assert_eq!(state(&lab), before);
    }
}

fn all_at_once() {
    let lab = lab();
    nft(&lab, "add table ip t\nadd chain ip t c\nadd rule ip t c oif \"eth1\" accept\n");
    shell(&lab, &["ip link add mv1 link eth1 type macvlan", "ip link set eth1 down"]);
    let (code, found, said) = doctor(lab.host(), "--nic eth1");
    assert_eq!(code, Some(4), "{said}");
    assert_eq!(found.names_in("breaks"), ["state", "place", "rules"], "{}", found.0);
    assert_eq!(found.state("carrier"), "limited");
}

/// Tests root without capabilities, because a user namespace may have no other users.
fn unprivileged() {
    let (lab, scratch) = (lab(), Scratch::new("doctor"));
    fs::set_permissions(scratch.file("x").parent().unwrap(), fs::Permissions::from_mode(0o755))
        .unwrap();
    let copy = copied_command(&scratch);
    let mut bare = Command::new("setpriv");
    bare.args(["--bounding-set=-all", "--inh-caps=-all"]).arg(&copy);
    bare.args(["doctor", "--nic", "eth1", "--json"]);
    let mut nobody = Command::new(&copy);
    nobody.args(["doctor", "--nic", "eth1", "--json"]).uid(65_534).gid(65_534);
    let mut outputs =
        vec![lab.host().run(|| bare.output()).unwrap().expect("setpriv, of util-linux")];
    // A user namespace may have no other user.
    outputs.extend(lab.host().run(|| nobody.output()).unwrap());
    for output in outputs {
        let (found, said) = (Findings::of(&output), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(3), "{said}{}", found.0);
        assert!(said.lines().count() == 1 && said.contains("capabilities"), "{said}");
        for name in
            ["capabilities", "TUN", "TUN offloads", "packet ring", "isolation", "name", "rules"]
        {
            let one = found.one(name);
            let text = one["found"].as_str().unwrap();
            assert!(one["state"] == "not run" && text.starts_with("needs CAP_NET_"), "{one}");
        }
        for name in
            ["kernel", "cores", "driver", "state", "MTU", "queues", "GRO", "place", "carrier"]
        {
            assert_eq!(found.state(name), "fine", "{name}");
        }
    }
}

fn absent() {
    let lab = Lab::through().unwrap();
    for flags in ["--nic nowhere0", "--nic packet:nowhere0 --json", "--nic tap:rxo0"] {
        let output = run(lab.host(), &format!("doctor {flags}"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(output.stdout.is_empty() && said.starts_with("rxo: --nic "), "{said}");
    }
}

fn left() {
    let (lab, place) = (lab(), Place::new());
    kill_both(&lab, place.start(&lab, ""));
    let mut ask = command("doctor --nic eth1 --json");
    ask.env("RUNTIME_DIRECTORY", place.path());
    let output = lab.host().run(|| ask.output()).unwrap().unwrap();
    let found = Findings::of(&output);
    assert_eq!((output.status.code(), found.names_in("breaks")), (Some(4), vec!["record"]));
    let remedy = found.one("record")["remedy"].as_str().unwrap();
    assert!(remedy.contains("rxo run --nic packet:eth1 --restore"), "{remedy}");
    // An incomplete record is reported before its other half is lost.
    let (file, half) = (place.file(), "half");
    shell(&lab, &["ip link set eth1-nic name eth1"]);
    fs::write(&file, half).unwrap();
    let output = lab.host().run(|| ask.output()).unwrap().unwrap();
    let one = Findings::of(&output).one("record").clone();
    assert_eq!(one["state"], "limited", "{one}");
    assert!(one["found"].as_str().unwrap().contains(file.to_str().unwrap()), "{one}");
    assert_eq!(fs::read_to_string(&file).unwrap(), half, "looking changes nothing");
}

fn in_use() {
    let lab = lab();
    let (rxo, _) = Rxo::start(lab.host(), SetUp::TakeOver.flags());
    // The TAP now has the nic's name, and its own lock.
    let (code, found, _) = doctor(lab.host(), "--nic eth1");
    assert_eq!((code, found.state("other run")), (Some(4), "breaks"), "{}", found.0);
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(doctor(lab.host(), "--nic eth1").1.state("other run"), "fine");
}
