//! Upgrades of `rxo run` between an interface and a TAP.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rxo_driver::custody::Successor;
use rxo_driver::succession::{self, Handover};
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Lab, LabOptions};
use serde_json::Value;

use super::datagrams::Datagrams;
use crate::process::{LONG, Rxo, signal, wait_until};
use crate::report::Scratch;
use crate::setup::SetUp;
use crate::takeover::{becomes, facts, sorted};
use crate::traffic::{count as packets, packets_by_interface};

const TIMES: usize = 5;
const ROUNDS: usize = 20;

/// A run between an interface and a TAP, and the processes that have replaced its first one.
struct Replaced {
    lab: Lab,
    flags: String,
    folder: Scratch,
    /// The first process, which keeps the run.
    first: Rxo,
    others: Vec<Rxo>,
}

impl Replaced {
    fn start(set_up: SetUp, flags: &str) -> Self {
        let lab = set_up.lab(LabOptions::default());
        let folder = scratch();
        let socket = folder.file("up.sock");
        let flags = format!("{} {flags} --upgrade {}", set_up.flags(), socket.display());
        let (first, _) = Rxo::start(lab.host(), &flags);
        set_up.attach(&lab);
        Self { lab, flags, folder, first, others: Vec::new() }
    }

    fn socket(&self) -> PathBuf {
        self.folder.file("up.sock")
    }

    /// Starts datagrams in both directions.
    fn datagrams(&self) -> [Datagrams; 2] {
        let (peer, host) = (self.lab.peer(), self.lab.host());
        let start = Datagrams::start;
        [start(peer, host, self.lab.host_address()), start(host, peer, self.lab.peer_address())]
    }

    /// Replaces the run once, and returns the longest times without a datagram in each direction.
    fn upgrade(&mut self, datagrams: &[Datagrams; 2]) -> [Duration; 2] {
        datagrams.iter().for_each(|one| one.await_more(50));
        datagrams.iter().for_each(|one| _ = one.longest_gap());
        let line = format!("run --json {}", self.flags);
        self.others.push(super::succeeded(&mut self.first, &self.lab, &line));
        datagrams.iter().for_each(|one| one.await_more(50));
        datagrams.each_ref().map(Datagrams::longest_gap)
    }

    /// Ends the run, and returns the totals of each of its processes.
    fn end(self) -> Vec<Value> {
        self.first.signal("INT");
        let ended = std::iter::once(self.first).chain(self.others).map(|process| {
            let (code, lines, said) = process.end();
            assert_eq!(code, Some(0), "{said}");
            lines.into_iter().next_back().expect("the totals of its part")
        });
        ended.collect()
    }
}

/// Returns a folder of its own for each run.
fn scratch() -> Scratch {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    Scratch::new(&format!("upgrade-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Returns the number of frames that `totals` count as lost.
fn counted(totals: &[Value]) -> u64 {
    let lost = |totals: &Value| {
        let rings = ["nic_in", "host_in"].map(|end| count(&totals[end]["ring_drops"]));
        let ends = ["host_out", "nic_out"].map(|end| count(&totals[end]["dropped_frames"]));
        count(&totals["overload"]) + rings.iter().chain(&ends).sum::<u64>()
    };
    totals.iter().map(lost).sum()
}

/// Asserts that no datagram came twice, that each missing datagram was counted, and that the counters are
/// consistent.
fn assert_whole(datagrams: [Datagrams; 2], totals: impl FnOnce() -> Vec<Value>) {
    let crossings = datagrams.map(Datagrams::end);
    let totals = totals();
    let missing: u32 = crossings.iter().map(|one| one.missing).sum();
    assert!(u64::from(missing) <= counted(&totals), "{crossings:?} {totals:?}");
    assert!(crossings.iter().all(|one| one.twice == 0 && one.sent > 100), "{crossings:?}");
    for totals in &totals {
        assert_eq!((&totals["unaccounted"], &totals["unsent"]), (&0.into(), &0.into()), "{totals}");
        super::assert_balanced(totals);
    }
    println!("{crossings:?}");
}

fn five_times(set_up: SetUp, flags: &str) {
    let mut run = Replaced::start(set_up, flags);
    let datagrams = run.datagrams();
    let config = BulkConfig {
        connections: 8,
        bytes_per_connection: Some(50_000_000),
        ..BulkConfig::default()
    };
    let (peer, host) = (run.lab.peer(), run.lab.host());
    let bulk = BulkTransfer::start(peer, host, run.lab.host_address(), &config).unwrap();
    let gaps: Vec<_> = (0..TIMES).map(|_| run.upgrade(&datagrams)).collect();
    let report = bulk.wait().unwrap();
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.received_bytes, 400_000_000);
    println!("without a datagram during each upgrade: {gaps:?}");
    assert_whole(datagrams, || run.end());
}

/// Upgrades with one worker: streams stay whole, and no datagram is lost or duplicated.
pub(super) fn one_worker() {
    five_times(SetUp::Apart, "");
}

pub(super) fn two_workers() {
    five_times(SetUp::Apart, "--workers 2");
}

/// The addresses and routes that the TAP has taken over stay on the TAP during upgrades, and return to the
/// nic however the last process ends.
pub(super) fn take_over() {
    five_times(SetUp::TakeOver, "--workers 2");
    type End = fn(&Replaced);
    let ends: [(&str, End); 3] = [
        ("the first process is asked", |run| run.first.signal("INT")),
        ("the worker is killed", |run| signal("KILL", run.others.last().unwrap().id())),
        ("worker and keeper are killed", |run| {
            run.first.signal("STOP");
            signal("KILL", run.others.last().unwrap().id());
            run.first.signal("KILL");
        }),
    ];
    for (what, end) in ends {
        let lab = SetUp::TakeOver.lab(LabOptions::default());
        let before = facts(&lab);
        let folder = scratch();
        let socket = folder.file("up.sock");
        let flags = format!("{} --upgrade {}", SetUp::TakeOver.flags(), socket.display());
        let (first, _) = Rxo::start(lab.host(), &flags);
        let mut run = Replaced { lab, flags, folder, first, others: Vec::new() };
        let during = facts(&run.lab);
        let datagrams = run.datagrams();
        (0..2).for_each(|_| _ = run.upgrade(&datagrams));
        assert_eq!(sorted(&run.lab, "ip -o address show"), addresses(&during), "{what}");
        let crossings = datagrams.map(Datagrams::end);
        assert!(crossings.iter().all(|one| one.twice == 0), "{what}: {crossings:?}");
        end(&run);
        wait_until(what, || !run.lab.host().interface("rxo0").exists());
        wait_until(what, || run.lab.host().run(|| Path::new(NIC_SETTINGS).exists()).unwrap());
        becomes(&run.lab, &before, what);
    }
}

/// A file that exists once the nic has its name.
const NIC_SETTINGS: &str = "/proc/sys/net/ipv6/conf/eth1/addr_gen_mode";

fn addresses(facts: &str) -> String {
    let lines = facts.lines().filter(|line| line.contains("inet"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Prints the longest times without a datagram in twenty upgrades of each set-up, alternately.
pub(super) fn measure() {
    let rows = [
        ("one worker", SetUp::Apart, ""),
        ("two workers", SetUp::Apart, "--workers 2"),
        ("two workers, taken over", SetUp::TakeOver, "--workers 2"),
    ];
    let started = rows.map(|(what, set_up, flags)| {
        let run = Replaced::start(set_up, flags);
        let datagrams = run.datagrams();
        (what, run, datagrams, Vec::new())
    });
    let mut started = Vec::from(started);
    for _ in 0..ROUNDS {
        for (_, run, datagrams, gaps) in &mut started {
            let [to_host, to_peer] = run.upgrade(datagrams);
            gaps.push(to_host.max(to_peer));
        }
    }
    println!("load {}", std::fs::read_to_string("/proc/loadavg").unwrap().trim());
    for (what, run, datagrams, mut gaps) in started {
        gaps.sort_unstable();
        println!("{what}: median {:?}, longest {:?}", gaps[ROUNDS / 2], gaps[ROUNDS - 1]);
        assert_whole(datagrams, || run.end());
    }
}

/// A successor prepares itself, lets the run stop, and then does nothing more. Frames that arrive in this
/// time wait in the devices.
pub(super) fn a_silent_heir() {
    for flags in ["", "--workers 2"] {
        let run = Replaced::start(SetUp::Apart, flags);
        let datagrams = run.datagrams();
        for is_silent in [true, false] {
            datagrams.iter().for_each(|one| one.await_more(50));
            let mut successor = stopped(&run);
            if is_silent {
                thread::sleep(succession::SUCCESSOR_TIMEOUT + Duration::from_millis(200));
                succession::claim(&mut successor).unwrap_err();
            }
        }
        datagrams.iter().for_each(|one| one.await_more(50));
        let said = |run: Replaced| {
            run.first.signal("INT");
            let (code, lines, said) = run.first.end();
            assert_eq!(code, Some(0), "{said}");
            assert_eq!(said.matches("handed nothing over").count(), 2, "{said}");
            lines.into_iter().next_back().into_iter().collect()
        };
        assert_whole(datagrams, || said(run));
    }
}

/// Asks `run` to hand over, and returns the socket on which it then waits for an answer.
fn stopped(run: &Replaced) -> UnixStream {
    let successor = Successor::find(&run.socket()).unwrap().expect("it listens");
    let mut asked = successor.ask().unwrap();
    Handover::receive(&asked.handover, LONG).unwrap();
    succession::prepared(&mut asked.handover).unwrap();
    Handover::receive(&asked.handover, LONG).unwrap();
    // The channel to the keeper closes, and the worker's socket stays.
    asked.handover
}

/// Each process writes a capture of its own, and each packet is in one of them.
pub(super) fn captured() {
    let scratch = scratch();
    let path = scratch.file("trace.pcapng");
    let mut run = Replaced::start(SetUp::Apart, &format!("--tap {}", path.display()));
    let datagrams = run.datagrams();
    (0..2).for_each(|_| _ = run.upgrade(&datagrams));
    let mut all = Vec::new();
    assert_whole(datagrams, || {
        all = run.end();
        all.clone()
    });
    for (name, totals) in ["trace.pcapng", "trace-2.pcapng", "trace-3.pcapng"].iter().zip(&all) {
        let [nic, host] = packets_by_interface(&scratch.file(name));
        assert_eq!(nic, packets(totals, ["nic_in", "nic_out"]), "{name}");
        assert_eq!(host, packets(totals, ["host_in", "host_out"]), "{name}");
        assert!(nic > 50, "{name}");
    }
}
