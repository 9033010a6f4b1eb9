//! Fifty random instants of a run: its processes are stopped or killed, the disk with its output is full, or
//! the reader of its output stops. The host must answer again by itself, and finally have its old
//! configuration.

use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use rxo_testbed::Lab;

use crate::Test;
use crate::offline::{Scene, random_below};
use crate::output::SmallDisk;
use crate::process::{command, signal, wait_until, worker_of};
use crate::setup::SetUp;

pub(crate) const LONG_TESTS: &[Test] =
    &[("at_fifty_random_instants_the_host_answers_without_a_hand", fifty_instants)];

/// The event at the random instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    WorkerStopped,
    BothStopped,
    BothKilled,
    FullDisk,
    HungOutput,
}

const EVENTS: [Event; 5] = [
    Event::WorkerStopped,
    Event::BothStopped,
    Event::BothKilled,
    Event::FullDisk,
    Event::HungOutput,
];

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WorkerStopped => "the worker is stopped (SIGSTOP)",
            Self::BothStopped => "keeper and worker are stopped",
            Self::BothKilled => "keeper and worker are killed",
            Self::FullDisk => "the disk under its lines is full",
            Self::HungOutput => "nobody reads its lines any more",
        })
    }
}

fn fifty_instants() {
    let scene = Scene::new();
    let mut times = [const { Vec::new() }; EVENTS.len()];
    for round in 0..50 {
        let kind = round % EVENTS.len();
        times[kind].push(one(&scene, EVENTS[kind]));
    }
    println!("| event | times | the host answers after, median | longest |");
    println!("|---|---|---|---|");
    for (event, mut times) in EVENTS.into_iter().zip(times) {
        times.sort_unstable();
        let [median, longest] = [times[times.len() / 2], *times.last().unwrap()];
        let [median, longest] = [median, longest].map(|time| time.as_secs_f64());
        println!("| {event} | {} | {median:.2} s | {longest:.2} s |", times.len());
    }
}

/// Starts a run, causes `event` at a random instant, and returns the time until the host answers.
fn one(scene: &Scene, event: Event) -> Duration {
    let disk = SmallDisk::mount();
    let (mut child, pause) = start(scene, event, &disk);
    thread::sleep(Duration::from_millis(random_below(3_000)));
    assert_eq!(child.try_wait().unwrap(), None, "it did not start");
    let worker = worker_of(child.id());
    match event {
        Event::WorkerStopped => worker.into_iter().for_each(|process| signal("STOP", process)),
        Event::BothStopped => both(&child, worker, "STOP"),
        Event::BothKilled => both(&child, worker, "KILL"),
        Event::FullDisk => fill(&disk),
        Event::HungOutput => pause.send(()).unwrap(),
    }
    let what = event.to_string();
    let time = scene.answers(&what);
    eprintln!("{what}: {time:?}");
    if matches!(event, Event::FullDisk | Event::HungOutput) {
        goes_on(scene, &mut child, &what);
    } else {
        // A run stopped before it changed anything still exists.
        worker.into_iter().chain([child.id()]).for_each(|process| {
            _ = Command::new("kill").args(["-KILL", &process.to_string()]).output();
        });
    }
    child.wait().unwrap();
    scene.is_as_before(&what);
    time
}

/// Starts the run. Its output goes to a disk, or to a reader that pauses on a message.
fn start(scene: &Scene, event: Event, disk: &SmallDisk) -> (Child, Sender<()>) {
    let mut rxo = command(&format!("run --json --stats 100ms {}", SetUp::TakeOver.flags()));
    rxo.env("RUNTIME_DIRECTORY", scene.place.path()).stdin(Stdio::null()).stderr(Stdio::null());
    let (pause, paused) = mpsc::channel();
    if event == Event::HungOutput {
        let (mut reader, writer) = std::io::pipe().unwrap();
        rustix::pipe::fcntl_setpipe_size(&writer, 4_096).unwrap();
        rxo.stdout(OwnedFd::from(writer));
        thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while paused.try_recv().is_err() && reader.read(&mut bytes).is_ok_and(|read| read > 0) {
            }
            // The reading end stays open until the run has ended.
            _ = paused.recv();
        });
    } else {
        rxo.stdout(File::create(disk.file("lines")).unwrap());
    }
    (scene.lab.host().run(|| rxo.spawn()).unwrap().unwrap(), pause)
}

fn both(child: &Child, worker: Option<u32>, name: &str) {
    // The worker may not exist yet; a stopped keeper does not start it.
    [child.id()].into_iter().chain(worker).for_each(|process| signal(name, process));
}

/// Fills the disk completely.
fn fill(disk: &SmallDisk) {
    let left = fs::write(disk.file("ballast"), vec![0; 65 << 10]);
    assert!(left.is_err(), "the disk has room for everything");
}

/// Checks that the run continues, and that it ends on SIGTERM.
fn goes_on(scene: &Scene, child: &mut Child, what: &str) {
    wait_until(&format!("the run carries: {what}"), || {
        scene.lab.host().interface("eth1-nic").exists()
    });
    for _ in 0..20 {
        scene.answers(what);
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(child.try_wait().unwrap(), None, "it has ended: {what}");
    assert!(scene.lab.host().interface(Lab::NIC).exists());
    signal("TERM", child.id());
}
