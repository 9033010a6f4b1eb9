//! `--take-over` on a host whose network changes: leases expire, routers advertise, rules name the nic,
//! addresses move away. Each row runs with and without rxo, and the state of the machine is compared item by
//! item at the end.

mod advertisements;
mod advertiser;
mod changes;
mod confirm;
mod elsewhere;
mod leases;
mod link;
mod records;
pub(crate) mod rules;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::{Lab, LabOptions, Namespace};

use crate::Test;
use crate::process::{LONG, Rxo};
use crate::setup::SetUp;
use crate::takeover::sorted;

pub(crate) fn tests() -> impl Iterator<Item = &'static Test> {
    let groups = [
        advertisements::TESTS,
        changes::TESTS,
        confirm::TESTS,
        elsewhere::TESTS,
        link::TESTS,
        records::TESTS,
        rules::TESTS,
    ];
    groups.into_iter().flatten()
}

pub(crate) use leases::LONG_TESTS;

/// Values of `takes_part`: with rxo, and without.
const BOTH: [bool; 2] = [true, false];

/// Starts rxo if `takes_part`.
fn start(lab: &Lab, takes_part: bool) -> Option<Rxo> {
    takes_part.then(|| Rxo::start(lab.host(), SetUp::TakeOver.flags()).0)
}

/// Ends rxo with SIGTERM, as a user would; it must succeed without output.
fn end(rxo: Option<Rxo>) {
    if let Some(rxo) = rxo {
        rxo.signal("TERM");
        let (code, _, said) = rxo.end();
        assert_eq!((code, said.as_str()), (Some(0), ""));
    }
}

pub(crate) fn lab() -> Lab {
    SetUp::TakeOver.lab(LabOptions::default())
}

/// Returns the compared state, one item a line: settings of interfaces, addresses, routes, rules, neighbours,
/// and packet filters. Lifetimes are left out, because they change meanwhile.
pub(crate) fn state(lab: &Lab) -> Vec<String> {
    let commands = [
        "ip -d -o link show",
        "ip -o address show",
        "ip -4 -o route show table all",
        "ip -6 -o route show table all",
        "ip rule; ip -6 rule",
        "ip -o neighbour show nud permanent",
        "nft list ruleset",
        "cd /proc/sys/net/ipv4/conf/eth1 && grep . * 2>/dev/null || true",
        "cd /proc/sys/net/ipv6/conf/eth1 && grep . * 2>/dev/null || true",
    ];
    let lines = commands.map(|command| sorted(lab, command));
    let lines = lines.iter().flat_map(|lines| lines.lines());
    lines.map(|line| line.split(' ').map(without_time).collect::<Vec<_>>().join(" ")).collect()
}

/// Returns a word of `ip`'s output, with a duration replaced by a placeholder.
fn without_time(word: &str) -> &str {
    let is_time = word.strip_suffix("sec").is_some_and(|number| number.parse::<u32>().is_ok());
    if is_time { "SECONDS" } else { word }
}

/// Waits until the state equals `before`, because the kernel updates some of it with a delay. Fails with the
/// lines that differ.
fn becomes(lab: &Lab, before: &[String], what: &str) {
    let begin = Instant::now();
    loop {
        let now = state(lab);
        if now == before {
            return;
        }
        let lacks: Vec<_> = before.iter().filter(|line| !now.contains(line)).collect();
        let has: Vec<_> = now.iter().filter(|line| !before.contains(line)).collect();
        assert!(begin.elapsed() < LONG, "{what}: lacks {lacks:#?}, has {has:#?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns `true` if `command` succeeds in this namespace.
fn succeeds(namespace: &Namespace, command: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    namespace.run(|| shell.output()).unwrap().unwrap().status.success()
}
