//! `--take-over`: the configuration of the nic moves to the TAP and comes back, however the run ends, and
//! connections through the nic survive.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::{Lab, LabOptions, Namespace, Offload};

use crate::Test;
use crate::at_once::at_once;
use crate::owed::{Place, kill_both};
use crate::process::{LONG, Rxo, run, wait_until};
use crate::setup::{SetUp, await_routes};
use crate::traffic::totals;

pub(crate) const TESTS: &[Test] = &[
    ("connections_survive_take_over_and_every_end", connections_survive),
    ("everything_of_the_nic_moves_and_comes_back", everything_moves),
    ("asked_twice_it_ends_at_once_and_still_puts_back", asked_twice),
    ("a_persistent_tap_is_left_as_it_was", a_persistent_tap),
    ("with_both_processes_killed_the_next_run_puts_back", both_killed),
    ("a_nic_that_comes_back_is_gone_on_with", a_nic_that_comes_back),
    ("a_dry_run_says_what_would_move_and_moves_nothing", a_dry_run),
];

/// Name of the nic while the TAP has the nic's name.
pub(crate) const PARKED: &str = "eth1-nic";

/// Returns the sorted lines that `command` prints in the host's network.
pub(crate) fn sorted(lab: &Lab, command: &str) -> String {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    let output = lab.host().run(|| shell.output()).unwrap().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    // A restored address has the flag `nodad`, and a new one is tentative for a moment.
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.replace(" nodad", "").replace(" tentative", "");
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Returns everything that `ip` shows of the host's network.
pub(crate) fn facts(lab: &Lab) -> String {
    let commands = [
        "ip -o address show",
        "ip -4 -o route show table all",
        "ip -6 -o route show table all",
        "ip -o neighbour show nud permanent",
        "ip -o link show dev eth1",
        "cat /proc/sys/net/ipv6/conf/eth1/disable_ipv6 /proc/sys/net/ipv6/conf/eth1/addr_gen_mode",
    ];
    commands.map(|command| sorted(lab, command)).join("\n")
}

/// Waits until the host's network equals `before`: the kernel adds the route to an own IPv6 address a moment
/// after the address.
pub(crate) fn becomes(lab: &Lab, before: &str, what: &str) {
    let begin = Instant::now();
    while facts(lab) != before && begin.elapsed() < LONG {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(facts(lab), before, "{what}");
}

pub(crate) fn shell(lab: &Lab, commands: &[&str]) {
    commands.iter().for_each(|command| drop(sorted(lab, command)));
}

/// A connection between peer and host, used in both directions.
struct Connection {
    ends: [TcpStream; 2],
}

impl Connection {
    /// Opens a connection between two namespaces.
    fn open(from: &Namespace, to: &Namespace, address: IpAddr) -> Self {
        let listen = || TcpListener::bind(SocketAddr::new(address, 0)).unwrap();
        let listener = to.run(listen).unwrap();
        let at = listener.local_addr().unwrap();
        let client = from.run(|| TcpStream::connect(at).unwrap()).unwrap();
        let ends = [client, listener.accept().unwrap().0];
        ends.iter().for_each(|end| {
            end.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        });
        Self { ends }
    }

    /// Opens connections, before rxo starts, in both directions and over IPv4 and IPv6.
    fn all(lab: &Lab) -> Vec<Self> {
        let (host, peer) = (lab.host(), lab.peer());
        let (hosts, peers) = (Lab::HOST_ADDRESSES, Lab::PEER_ADDRESSES);
        vec![
            Self::open(peer, host, hosts.0.into()),
            Self::open(host, peer, peers.0.into()),
            Self::open(peer, host, hosts.1.into()),
        ]
    }

    fn exchange(&mut self, what: &str) {
        for (from, to) in [(0, 1), (1, 0)] {
            let text = [from as u8; 5_000];
            self.ends[from].write_all(&text).unwrap();
            let mut read = [9; 5_000];
            self.ends[to].read_exact(&mut read).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(read, text, "{what}");
        }
    }
}

/// A way to end a run: its name, the action, and the exit code.
type End = (&'static str, fn(&Rxo), Option<i32>);

fn connections_survive() {
    let ends: [End; 7] = [
        ("TERM", |rxo| rxo.signal("TERM"), Some(0)),
        ("INT to both, as from a terminal", int_to_both, Some(0)),
        ("QUIT to both, as from a terminal", quit_to_both, Some(0)),
        ("the worker is killed", |rxo| rxo.signal_worker("KILL"), Some(1)),
        ("the worker aborts", |rxo| rxo.signal_worker("ABRT"), Some(1)),
        ("the worker faults", |rxo| rxo.signal_worker("FPE"), Some(1)),
        ("the keeper is killed", |rxo| rxo.signal("KILL"), None),
    ];
    at_once(ends, |(what, end, code)| {
        let lab = SetUp::TakeOver.lab(LabOptions::default());
        let nic = lab.host().interface(Lab::NIC);
        nic.set_offload(Offload::GenericReceive, true).unwrap();
        let mut connections = Connection::all(&lab);
        connections.iter_mut().for_each(|one| one.exchange("before"));
        let before = facts(&lab);
        let (rxo, _) = Rxo::start(lab.host(), SetUp::TakeOver.flags());
        assert!(!sorted(&lab, "ip -o address show dev eth1-nic").contains("inet"), "{what}");
        let tap = lab.host().interface("rxo0");
        assert_eq!(tap.index().unwrap(), nic.index().unwrap(), "{what}: the TAP has both names");
        connections.iter_mut().for_each(|one| one.exchange("while it runs"));
        end(&rxo);
        let (ended, ..) = rxo.end();
        assert_eq!(ended, code, "{what}");
        // If the keeper is killed, the restorer restores the nic after our child has ended.
        becomes(&lab, &before, what);
        wait_until(what, || nic.offload(Offload::GenericReceive).unwrap());
        assert!(!lab.host().interface("rxo0").exists(), "{what}");
        connections.iter_mut().for_each(|one| one.exchange(what));
    });
}

fn int_to_both(rxo: &Rxo) {
    rxo.signal_worker("INT");
    rxo.signal("INT");
}

fn quit_to_both(rxo: &Rxo) {
    rxo.signal_worker("QUIT");
    rxo.signal("QUIT");
}

fn everything_moves() {
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    shell(
        &lab,
        &[
            "ip address add 10.77.0.3/24 dev eth1 label eth1:x",
            "ip address add 10.78.0.1 peer 10.78.0.9/32 dev eth1",
            "ip address add fd78::3/64 dev eth1 valid_lft 5000 preferred_lft 4000 nodad",
            "ip route add 198.51.100.0/24 via 10.77.0.1 metric 50 mtu 1400 table 77",
            "ip route add 203.0.113.0/24 nexthop via 10.77.0.1 weight 3 nexthop via 10.77.0.9",
            "ip route add 192.0.2.0/25 dev eth1 scope link metric 9",
            "ip -6 route add 2001:db8:7::/48 via fd77::1 metric 30",
            "ip neighbour add 10.77.0.99 lladdr 02:00:00:00:00:99 dev eth1 nud permanent",
            // A route of another interface with one of our addresses as its source.
            "ip link add other0 type veth peer name other1",
            "ip link set other0 up",
            "ip route add 198.51.101.0/24 dev other0 src 10.77.0.2",
            "ip neighbour add fd77::99 lladdr 02:00:00:00:00:99 dev eth1 nud permanent",
        ],
    );
    await_routes(&lab);
    // Lifetimes count down during the run.
    let facts = || facts(&lab).replace(|c: char| c.is_ascii_digit(), "#");
    let before = facts();
    let moved = before.matches("eth#").count();
    let (rxo, configuration) = Rxo::start(lab.host(), SetUp::TakeOver.flags());
    let take_over = &configuration["take_over"];
    assert_eq!(take_over["addresses"].as_array().unwrap().len(), 6, "{configuration}");
    assert_eq!(take_over["routes"].as_array().unwrap().len(), 6, "{configuration}");
    assert_eq!(take_over["neighbours"], 2, "{configuration}");
    await_routes(&lab);
    let during = facts();
    for line in before.lines().filter(|line| line.contains("eth#") && !line.contains("link/")) {
        // The TAP has the nic's name, and another index.
        let line = line.replacen("#: ", "", 1);
        let words: Vec<_> = line.split_whitespace().collect();
        let is_it = |seen: &&str| seen.replacen("#: ", "", 1).split_whitespace().eq(words.clone());
        assert!(during.lines().any(|seen| is_it(&seen)), "'{line}' ({moved}) is not in\n{during}");
    }
    totals(rxo);
    await_routes(&lab);
    assert_eq!(facts(), before);
}

fn asked_twice() {
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    let nic = lab.host().interface(Lab::NIC);
    nic.set_offload(Offload::GenericReceive, true).unwrap();
    let before = facts(&lab);
    for (first, second) in [("HUP", "TERM"), ("INT", "INT"), ("TERM", "HUP")] {
        let (rxo, _) = Rxo::start(lab.host(), SetUp::TakeOver.flags());
        // The worker cannot end itself.
        rxo.signal_worker("STOP");
        rxo.signal(first);
        rxo.took_signals();
        rxo.signal(second);
        let (code, ..) = rxo.end();
        assert_eq!(code, Some(1), "{first} {second}");
        becomes(&lab, &before, &format!("{first} {second}"));
        assert!(nic.offload(Offload::GenericReceive).unwrap(), "{first} {second}");
    }
}

fn a_persistent_tap() {
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    shell(&lab, &["ip tuntap add dev rxo0 mode tap", "ip link set rxo0 address 02:00:00:00:00:77"]);
    shell(&lab, &["ip address add 10.77.0.2/24 dev rxo0", "ip address add 10.99.0.1/24 dev rxo0"]);
    for end in ["TERM", "KILL"] {
        let mut connections = Connection::all(&lab);
        let before = facts(&lab);
        let (rxo, _) = Rxo::start(lab.host(), SetUp::TakeOver.flags());
        connections.iter_mut().for_each(|one| one.exchange("while it runs"));
        if end == "TERM" {
            rxo.signal("TERM")
        } else {
            rxo.signal_worker(end)
        }
        rxo.end();
        becomes(&lab, &before, end);
        let tap = lab.host().interface("rxo0");
        assert_eq!(tap.mac().unwrap(), [2, 0, 0, 0, 0, 0x77], "{end}");
        connections.iter_mut().for_each(|one| one.exchange("afterwards"));
    }
}

/// The kernel removes TAP and packet filter. The next command restores the rest.
fn both_killed() {
    let place = Place::new();
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    let nic = lab.host().interface(Lab::NIC);
    nic.set_offload(Offload::GenericReceive, true).unwrap();
    let mut connections = Connection::all(&lab);
    let before = facts(&lab);
    for by in ["--restore", "the next run"] {
        kill_both(&lab, place.start(&lab, ""));
        assert!(!sorted(&lab, "ip -o address show").contains("10.77.0.2"), "{by}");
        assert_eq!(place.record_count(), 1, "{by}");
        if by == "--restore" {
            let said = place.restore(&lab);
            assert!(said.contains("packet:eth1 has back what a run that was killed"), "{said}");
        } else {
            let rxo = place.start(&lab, "");
            connections.iter_mut().for_each(|one| one.exchange("in the next run"));
            rxo.signal("TERM");
            let (code, _, said) = rxo.end();
            assert_eq!(code, Some(0), "{said}");
        }
        becomes(&lab, &before, by);
        assert_eq!(place.file_count(), 0, "{by}");
        assert!(nic.offload(Offload::GenericReceive).unwrap(), "{by}");
        connections.iter_mut().for_each(|one| one.exchange(by));
    }
}

/// If the nic goes and comes back, the host keeps TAP, addresses and connections. At the end the new nic gets
/// the configuration of the first one.
fn a_nic_that_comes_back() {
    a_nic_that_goes_and_comes("packet:eth1", "");
}

/// Tests a nic that goes and comes back, with this name of the nic, and `flags` in addition to those of the
/// set-up.
pub(crate) fn a_nic_that_goes_and_comes(nic: &str, flags: &str) {
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    let mut connections = Connection::all(&lab);
    let addresses = "ip -o address show dev eth1 | cut -d' ' -f3- | grep -v fe80";
    let before = sorted(&lab, addresses);
    let flags = format!("--nic {nic} --host tap:rxo0 --take-over --wait-for-nic {flags}");
    let (rxo, _) = Rxo::start(lab.host(), &flags);
    connections.iter_mut().for_each(|one| one.exchange("while it runs"));
    for round in ["first", "second"] {
        let index = lab.host().interface(PARKED).index().unwrap();
        lab.host().interface(PARKED).delete().unwrap();
        wait_until("the name is free", || !lab.host().interface(Lab::NIC).exists());
        assert!(lab.host().interface("rxo0").exists(), "{round}");
        lab.connect_again(Lab::NIC).unwrap();
        wait_until("the TAP has the name", || lab.host().interface(PARKED).exists());
        assert_ne!(lab.host().interface(PARKED).index().unwrap(), index);
        connections.iter_mut().for_each(|one| one.exchange(round));
        let read = || std::fs::read_to_string("/proc/sys/net/ipv6/conf/eth1-nic/disable_ipv6");
        assert_eq!(lab.host().run(read).unwrap().unwrap().trim(), "1", "{round}");
    }
    rxo.signal("TERM");
    let (code, lines, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    let notices = lines.iter().filter(|line| line["kind"] == "notice").count();
    assert!(notices >= 4, "{said}");
    assert!(said.contains(&format!("{nic} has gone; waiting for another `eth1`")), "{said}");
    let totals = lines.last().unwrap();
    // These include two exchanges through the deleted nics.
    assert!(totals["nic_in"]["bytes"].as_u64().unwrap() > 3 * 3 * 5_000, "{totals}");
    assert_eq!(sorted(&lab, addresses), before);
    connections.iter_mut().for_each(|one| one.exchange("afterwards"));
}

fn a_dry_run() {
    let lab = SetUp::TakeOver.lab(LabOptions::default());
    let before = facts(&lab);
    let line = format!("run {} --dry-run", SetUp::TakeOver.flags());
    let said = String::from_utf8(run(lab.host(), &line).stdout).unwrap();
    for part in ["hardware address", "10.77.0.2/24", "fd77::2/64", "route default via 10.77.0.1"] {
        assert!(said.contains(part), "'{part}' is not in {said}");
    }
    assert_eq!(facts(&lab), before);
}
