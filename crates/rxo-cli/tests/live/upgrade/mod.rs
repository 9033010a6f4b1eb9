//! A running rxo is replaced by the next process, which continues with its devices: streams stay whole, and
//! nothing is lost.

mod datagrams;
mod tap;

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::Lab;
use serde_json::Value;

use crate::Test;
use crate::control::asked;
use crate::endpoint::{AT_HOST, connect, finish, hash, json, pattern};
use crate::guests::{Socket, totals};
use crate::process::{LONG, Rxo, spawn, wait_until};
use crate::report::Scratch;
use crate::switch::{Sockets, received, send};

pub(crate) const TESTS: &[Test] = &[
    ("a_stream_to_a_guest_survives_five_upgrades", five_times),
    ("an_upgrade_that_fails_changes_nothing", failing),
    ("three_guests_receive_through_upgrades", || three_guests("")),
    ("workers_of_a_switch_hand_over_each_queue", || three_guests("--workers 2")),
    ("nothing_to_a_tap_is_lost_in_five_upgrades", tap::one_worker),
    ("two_workers_hand_over_each_queue", tap::two_workers),
    ("a_takeover_survives_upgrades_and_comes_back", tap::take_over),
    ("what_arrives_while_an_upgrade_fails_waits", tap::a_silent_heir),
    ("each_process_of_a_run_captures_into_its_own_file", tap::captured),
];

pub(crate) const LONG_TESTS: &[Test] = &[("measure_upgrades", tap::measure)];

const TIMES: usize = 5;
const TRIES: usize = 50;

/// The flags of a run that can be replaced, and its sockets.
struct Replaced {
    socket: Socket,
    flags: String,
}

impl Replaced {
    fn new(name: &str) -> Self {
        let socket = Socket::new(name);
        let flags = format!(
            "--nic packet:wire0 --vhost vm={},learn=yes --upgrade {} --control {}",
            socket.path(),
            beside(&socket, "up.sock").display(),
            beside(&socket, "ctl.sock").display()
        );
        Self { socket, flags }
    }

    fn control(&self) -> PathBuf {
        beside(&self.socket, "ctl.sock")
    }
}

fn beside(socket: &Socket, name: &str) -> PathBuf {
    PathBuf::from(socket.path().to_string()).with_file_name(name)
}

/// Upgrades a run five times during a stream; the hash of the stream must be right. Prints the longest time
/// without a frame of the guest.
fn five_times() {
    let (lab, run) = (Lab::through().unwrap(), Replaced::new("upgrades"));
    let (mut first, _) = Rxo::guests(lab.host(), &run.flags);
    let keeper = first.id();
    let line = format!("sink {} --listen 7000 --hash --json --interval 0s", run.socket.guest());
    let sink = spawn(lab.host(), &line);
    let stream = connect(lab.peer(), AT_HOST);
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let chunk = pattern(1 << 16);
    let (gaps, bytes) = thread::scope(|scope| {
        let end = End(&stop);
        let sender = scope.spawn(|| {
            let mut bytes = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                (&stream).write_all(&chunk).unwrap();
                bytes.extend_from_slice(&chunk);
                sent.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(1));
            }
            bytes
        });
        let mut gaps = Vec::new();
        let mut runs = Vec::new();
        for _ in 0..TIMES {
            let before = sent.load(Ordering::Relaxed);
            wait_until("the stream flows", || sent.load(Ordering::Relaxed) > before + 20);
            let (next, gap) = upgraded(&mut first, &lab, &run);
            gaps.push(gap);
            runs.push(next);
            assert!(asked(&run.control(), "counters").is_object(), "the next one answers");
        }
        let before = sent.load(Ordering::Relaxed);
        wait_until("the stream flows", || sent.load(Ordering::Relaxed) > before + 20);
        drop(end);
        let bytes = sender.join().unwrap();
        finish(&stream);
        assert_eq!(first.id(), keeper, "the first process keeps the run");
        first.signal("INT");
        let (code, _, said) = first.end();
        assert_eq!(code, Some(0), "{said}");
        for run in runs {
            let (code, lines, said) = run.end();
            assert_eq!(code, Some(0), "{said}");
            assert!(!lines.is_empty(), "the totals of its part");
        }
        (gaps, bytes)
    });
    let (totals, crc) = totals(json(&sink.wait_with_output().unwrap()));
    assert_eq!((totals["bytes"].as_u64(), crc), (Some(bytes.len() as u64), hash(&bytes)));
    println!("without a frame during each upgrade: {gaps:?}");
    let control = run.control();
    let left: Vec<_> = control.parent().unwrap().read_dir().unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Streams to three guests at once stay whole, and each guest answers the next rxo.
fn three_guests(workers: &str) {
    let (lab, sockets) = (Lab::through().unwrap(), Sockets::new("upgrades"));
    let folder = Scratch::new("upgrade-guests");
    let socket = folder.file("up.sock");
    let flags = format!("{} {workers} --upgrade {}", sockets.flags(&[""; 3]), socket.display());
    let (mut first, _) = Rxo::guests(lab.host(), &flags);
    let sinks = [0, 1, 2].map(|guest| sockets.sink(&lab, guest));
    let bytes = pattern(60_000_000);
    let mut others = Vec::new();
    thread::scope(|scope| {
        let senders = [0, 1, 2].map(|guest| {
            let (lab, bytes) = (&lab, &bytes);
            scope.spawn(move || send(lab.peer(), guest, bytes))
        });
        let wire = lab.host().interface(Lab::WIRE_INTERFACE);
        let frames = || wire.counters().unwrap().sent_frames;
        for _ in 0..3 {
            let before = frames();
            let is_over = || senders.iter().all(|it| it.is_finished());
            wait_until("the streams flow", || is_over() || frames() > before + 20);
            others.push(succeeded(&mut first, &lab, &format!("guest --json {flags}")));
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
    sinks.into_iter().for_each(|sink| received(sink, &bytes));
    first.signal("INT");
    for process in std::iter::once(first).chain(others) {
        let (code, lines, said) = process.end();
        assert_eq!(code, Some(0), "{said}");
        let totals = lines.last().unwrap();
        assert_eq!(totals["unaccounted"], 0, "{totals}");
        assert_balanced(totals);
    }
}

/// Starts rxo with `line`, and repeats this until one process has succeeded `first`, the running one. `first`
/// continues if a thread of a guest has not had a processor for half a second.
fn succeeded(first: &mut Rxo, lab: &Lab, line: &str) -> Rxo {
    let started = (0..TRIES).find_map(|_| Rxo::from_child(spawn(lab.host(), line)));
    // If the first one has ended, the next one has not succeeded it, but begun a run of its own.
    first.assert_running();
    started.expect("one of them succeeds").0
}

/// Asserts that all frames that entered a stage of rxo have left it, or were counted.
fn assert_balanced(totals: &Value) {
    let mut stages = totals["imbalance"].as_object().unwrap().values();
    assert!(stages.all(|stage| *stage == 0), "{totals}");
}

/// Starts the next rxo, and waits until it works. Returns it, and the longest time without a frame of the
/// guest.
fn upgraded(first: &mut Rxo, lab: &Lab, run: &Replaced) -> (Rxo, Duration) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let end = End(&stop);
        let gap = scope.spawn(|| longest_gap(&stop, lab));
        let next = succeeded(first, lab, &format!("guest --json {}", run.flags));
        thread::sleep(Duration::from_millis(300));
        drop(end);
        (next, gap.join().unwrap())
    })
}

fn longest_gap(stop: &AtomicBool, lab: &Lab) -> Duration {
    let wire = lab.host().interface(Lab::WIRE_INTERFACE);
    let frames = || wire.counters().unwrap().sent_frames;
    let (mut last, mut seen, mut longest) = (Instant::now(), frames(), Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(1));
        let now = frames();
        if now != seen {
            longest = longest.max(last.elapsed());
            (last, seen) = (Instant::now(), now);
        }
    }
    longest
}

/// The running rxo stays as it was if its successor has other guests, or is killed at any moment.
fn failing() {
    let (lab, run) = (Lab::through().unwrap(), Replaced::new("failing"));
    let (first, _) = Rxo::guests(lab.host(), &run.flags);
    let line = format!("sink {} --listen 7000 --hash --json --interval 0s", run.socket.guest());
    let sink = spawn(lab.host(), &line);
    let stream = connect(lab.peer(), AT_HOST);
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let bytes = pattern(20_000_000);
    thread::scope(|scope| {
        let sender = scope.spawn(|| (&stream).write_all(&bytes).unwrap());
        let other = run.flags.replace("vm.sock", "other.sock");
        let said = spawn(lab.host(), &format!("guest --json {other}")).wait_with_output().unwrap();
        let error = String::from_utf8(said.stderr).unwrap();
        assert!(!said.status.success());
        assert!(error.contains("is not handed over; start it with the flags"), "{error}");
        for after in [1, 3, 5, 8, 12, 20] {
            let mut next =
                spawn(lab.host(), &format!("guest --json {}", run.flags.replace("vm.sock", "x")));
            thread::sleep(Duration::from_millis(after));
            next.kill().unwrap();
            next.wait().unwrap();
        }
        sender.join().unwrap();
    });
    finish(&stream);
    let (totals, crc) = totals(json(&sink.wait_with_output().unwrap()));
    assert_eq!((totals["bytes"].as_u64(), crc), (Some(20_000_000), hash(&bytes)));
    first.signal("INT");
    let (code, _, said) = first.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("another rxo did not succeed; the run goes on"), "{said}");
}

/// Sets a thread's stop flag on drop, also after a failed test, because its scope waits for the thread.
struct End<'s>(&'s AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
