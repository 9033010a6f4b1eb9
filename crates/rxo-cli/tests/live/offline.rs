//! The host is never offline for long: processes of a run are stopped, killed alone or together at random
//! instants, and the host answers again by itself.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Lab, LabOptions};

use crate::Test;
use crate::manager::Manager;
use crate::owed::Place;
use crate::process::{Busy, LONG, Rxo, command, signal, wait_until, worker_of};
use crate::setup::SetUp;
use crate::takeover::{becomes, facts};

pub(crate) const TESTS: &[Test] = &[
    ("a_worker_that_is_stopped_is_ended_and_the_host_answers", stopped_worker),
    ("a_worker_that_hangs_while_it_ends_is_ended", hung_at_the_end),
    ("both_killed_at_once_the_host_answers_without_a_hand", both_killed),
    ("a_keeper_that_is_killed_with_a_stopped_worker_offline_no_longer", killed_and_stopped),
    ("both_stopped_are_ended_and_the_host_answers", both_stopped),
    ("at_random_instants_of_its_beginning_nothing_keeps_the_host_offline", random_instants),
    ("a_suspended_machine_ends_no_run", suspended),
    ("systemd_is_told_that_a_run_works_and_ends", told_to_systemd),
    ("a_watchdog_that_is_off_ends_no_run", watchdog_off),
    ("a_worker_that_gets_no_processor_is_not_ended", starved),
];

/// A host with a run, and a server on it that answers.
pub(crate) struct Scene {
    pub(crate) lab: Lab,
    pub(crate) place: Place,
    before: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let (lab, place) = (SetUp::TakeOver.lab(LabOptions::default()), Place::new());
        let listener = lab.host().run(|| TcpListener::bind("[::]:7").unwrap()).unwrap();
        thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let mut byte = [0];
                // A client that has disconnected needs no answer.
                _ = client.read_exact(&mut byte).and_then(|()| client.write_all(&byte));
            }
        });
        let before = facts(&lab);
        Self { lab, place, before }
    }

    /// Starts a run and lets it work for a random time.
    fn start(&self, flags: &str) -> Rxo {
        let rxo = self.place.start(&self.lab, flags);
        self.answers("the run carries");
        thread::sleep(Duration::from_millis(random_below(300)));
        rxo
    }

    /// Waits until the host answers a new connection. Returns the time that it took.
    pub(crate) fn answers(&self, what: &str) -> Duration {
        let begun = Instant::now();
        let address = (Lab::HOST_ADDRESSES.0, 7).into();
        let ask = || {
            let mut server = TcpStream::connect_timeout(&address, Duration::from_millis(300))?;
            server.set_read_timeout(Some(Duration::from_millis(300)))?;
            server.write_all(b"x")?;
            server.read_exact(&mut [0])
        };
        while self.lab.peer().run(ask).unwrap().is_err() {
            let facts = || crate::takeover::sorted(&self.lab, "ip -o address show");
            assert!(begun.elapsed() < LONG, "the host does not answer: {what}: {}", facts());
        }
        begun.elapsed()
    }

    /// Checks that the host answers, and has its configuration from before the run.
    pub(crate) fn is_as_before(&self, what: &str) {
        wait_until("the TAP is gone", || !self.lab.host().interface("rxo0").exists());
        wait_until("the name is back", || !self.lab.host().interface("eth1-nic").exists());
        eprintln!("{what}: the host answers after {:?}", self.answers(what));
        becomes(&self.lab, &self.before, what);
        wait_until("nothing is owed any more", || self.place.file_count() == 0);
    }
}

fn stopped_worker() {
    let scene = Scene::new();
    for what in ["once", "again"] {
        let rxo = scene.start("");
        let begun = Instant::now();
        rxo.signal_worker("STOP");
        let (code, _, said) = rxo.end();
        eprintln!("restored {:?} after the worker was stopped", begun.elapsed());
        assert_eq!(code, Some(1), "{said}");
        assert!(
            said.contains("the worker did nothing for 700 ms (it is stopped) and is ended"),
            "{said}"
        );
        scene.is_as_before(what);
    }
}

/// One SIGTERM ends a run, even if its worker hangs.
fn hung_at_the_end() {
    let scene = Scene::new();
    let rxo = scene.start("--watchdog 500ms");
    rxo.signal_worker("STOP");
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the worker did nothing for 500 ms"), "{said}");
    scene.is_as_before("after one SIGTERM");
}

fn both_killed() {
    let scene = Scene::new();
    for order in ["keeper first", "worker first"] {
        let rxo = scene.start("");
        let worker = rxo.worker();
        // Neither process sees the other one end.
        rxo.signal("STOP");
        signal("STOP", worker);
        if order == "keeper first" {
            rxo.signal("KILL");
            signal("KILL", worker);
        } else {
            signal("KILL", worker);
            rxo.signal("KILL");
        }
        let (code, _, said) = rxo.end();
        assert_eq!(code, None);
        assert!(said.contains("has back what a run that was killed had taken"), "{said}");
        scene.is_as_before(order);
    }
}

/// If the keeper is killed and the worker is stopped, the worker cannot end itself, so the restorer has to
/// restore.
fn killed_and_stopped() {
    let scene = Scene::new();
    let rxo = scene.start("");
    rxo.signal_worker("STOP");
    rxo.signal("KILL");
    let (code, _, said) = rxo.end();
    assert_eq!(code, None);
    assert!(said.contains("has back what a run that was killed had taken"), "{said}");
    scene.is_as_before("the keeper killed, the worker stopped");
}

fn both_stopped() {
    let scene = Scene::new();
    let rxo = scene.start("");
    rxo.signal("STOP");
    rxo.signal_worker("STOP");
    let (code, _, said) = rxo.end();
    assert_eq!(code, None);
    assert!(said.contains("has back what a run that was killed had taken"), "{said}");
    scene.is_as_before("both stopped");
}

/// A run interrupted at its start may have changed some settings, or none.
fn random_instants() {
    let scene = Scene::new();
    for round in 0..12_u64 {
        let mut rxo = command(&format!("run --json {}", SetUp::TakeOver.flags()));
        rxo.env("RUNTIME_DIRECTORY", scene.place.path());
        let mut child = scene.lab.host().run(|| rxo.spawn()).unwrap().unwrap();
        thread::sleep(Duration::from_millis(random_below(150)));
        let what = ["both killed", "the worker stopped", "both stopped"][(round % 3) as usize];
        let worker = worker_of(child.id());
        let (name, keeper) = match what {
            "both killed" => ("KILL", Some(child.id())),
            "the worker stopped" => ("STOP", None),
            _ => ("STOP", Some(child.id())),
        };
        // The worker may not exist yet; a stopped keeper does not start it.
        keeper.into_iter().chain(worker).for_each(|process| signal(name, process));
        eprintln!("round {round}: {what}, worker {worker:?}");
        scene.answers(what);
        // A run stopped before it changed anything still exists.
        worker.into_iter().chain([child.id()]).for_each(|process| {
            _ = Command::new("kill").args(["-KILL", &process.to_string()]).output();
        });
        child.wait().unwrap();
        scene.is_as_before(what);
    }
}

/// Returns a random number below `limit`.
pub(crate) fn random_below(limit: u64) -> u64 {
    RandomState::new().build_hasher().finish() % limit
}

/// All processes stop and continue, as when a machine is suspended: the keeper does not run either.
fn suspended() {
    let scene = Scene::new();
    let rxo = scene.start("--watchdog 1s");
    for _ in 0..3 {
        rxo.signal("STOP");
        rxo.signal_worker("STOP");
        // Longer than the worker may be silent, but shorter than the restorer's limit.
        thread::sleep(Duration::from_millis(1_300));
        rxo.signal_worker("CONT");
        rxo.signal("CONT");
        scene.answers("it goes on");
    }
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    scene.is_as_before("at the end");
}

fn told_to_systemd() {
    let (lab, manager) = (SetUp::TakeOver.lab(LabOptions::default()), Manager::new("manager"));
    let path = manager.path();
    let variables: [(&str, &Path); 2] =
        [("NOTIFY_SOCKET", &path), ("WATCHDOG_USEC", Path::new("400000"))];
    let (rxo, _) = Rxo::start_with(lab.host(), SetUp::TakeOver.flags(), &variables);
    // A slow start also sends messages for the watchdog.
    let said = || Some(manager.next());
    let ready = std::iter::from_fn(said).find(|message| message != "WATCHDOG=1");
    assert_eq!(ready.as_deref(), Some("READY=1"));
    assert_eq!([(); 2].map(|()| manager.next()), ["WATCHDOG=1"; 2]);
    rxo.signal("TERM");
    while manager.next() != "STOPPING=1" {}
    let (code, _, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
}

fn watchdog_off() {
    let scene = Scene::new();
    let rxo = scene.start("--watchdog off");
    rxo.signal_worker("STOP");
    thread::sleep(Duration::from_secs(2));
    rxo.signal_worker("CONT");
    scene.answers("it goes on");
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    scene.is_as_before("at the end");
}

/// One of two workers is a thread of the lowest priority, on a processor that other programs use, so it waits
/// seconds for the processor. Its process's first thread waits for it, and does not hang.
fn starved() {
    let scene = Scene::new();
    let mut rxo = scene.start("--workers 2");
    // All are connected before it starves: a starved worker delays a handshake longer than a client waits.
    let (peer, host) = (scene.lab.peer(), scene.lab.host());
    let config = BulkConfig { connections: 16, ..BulkConfig::default() };
    let bulk = BulkTransfer::start(peer, host, scene.lab.host_address(), &config).unwrap();
    let worker = WorkerThread::find(rxo.worker(), "rxo-worker-2");
    worker.starve();
    let busy = "ulimit -t 60; while :; do :; done";
    let taskset = ["--cpu-list", PROCESSOR, "sh", "-c", busy];
    let busy = [(); 3].map(|()| Busy::start("taskset", &taskset));
    let before = worker.waited();
    wait_until("the worker has waited for a processor for three seconds", || {
        worker.waited() - before > Duration::from_secs(3)
    });
    rxo.assert_running();
    drop(busy);
    bulk.stop().unwrap();
    scene.answers("it goes on");
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    scene.is_as_before("at the end");
}

/// The processor on which a worker starves.
const PROCESSOR: &str = "0";

/// A thread of a worker, by its folder in `/proc`.
struct WorkerThread(PathBuf);

impl WorkerThread {
    fn find(process: u32, name: &str) -> Self {
        let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
        let mut threads = threads.map(|thread| thread.unwrap().path());
        let is_named = |thread: &PathBuf| {
            fs::read_to_string(thread.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
        };
        Self(threads.find(is_named).expect(name))
    }

    /// Gives the thread the lowest priority, and one processor.
    fn starve(&self) {
        let id = self.0.file_name().unwrap().to_str().unwrap();
        for line in
            [["chrt", "--idle", "-p", "0", id], ["taskset", "--cpu-list", "-p", PROCESSOR, id]]
        {
            let output = Command::new(line[0]).args(&line[1..]).output().unwrap();
            assert!(output.status.success(), "{line:?}: {output:?}");
        }
    }

    /// Returns for how long the thread has waited for a processor since its start.
    fn waited(&self) -> Duration {
        let schedule = fs::read_to_string(self.0.join("schedstat")).unwrap();
        Duration::from_nanos(schedule.split(' ').nth(1).unwrap().parse().unwrap())
    }
}
