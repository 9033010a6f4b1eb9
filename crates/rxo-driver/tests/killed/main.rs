//! Tests that kill (SIGKILL) either side of a ring at random instants: the other side continues, connects to
//! the next process, and keeps no resources of the previous ones.
//!
//! Three of four kills hit a ring on which frames flow, at a random instant after its first frame. The fourth
//! comes at a random instant after the start, so that it may interrupt the connecting.
//!
//! The other side is this program again, as a separate process. All cases are one test, because it counts the
//! file descriptors of this process.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use rxo_device::{FrameSink, FrameSource};
use rxo_driver::wait::{Interest, WaitList};
use rxo_driver::{Device, DeviceName, DeviceOptions};
use rxo_frame::Frame;

/// The environment variable with the name of the device that a child process opens.
const CHILD: &str = "RXO_TEST_KILLED_DEVICE";
/// The number of kills of each side, and the least number of them that must hit a ring on which frames flow.
const KILLS: u32 = 100;
const LEAST_RUNNING: u32 = KILLS * 7 / 10;
/// A ring counts as running if a frame arrived within this time before the kill. The time is several turns of
/// both sides.
const RECENT: Duration = Duration::from_millis(50);
/// A time limit longer than any machine takes.
const TIMEOUT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(1);

#[test]
fn either_side_is_killed_at_any_instant_and_the_other_goes_on() {
    if let Ok(name) = env::var(CHILD) {
        return work_until_killed(&name);
    }
    let folder = Folder::new();
    let (device, driver) = (folder.name("vhost"), folder.name("virtio"));
    a_driver_survives_its_devices(&device, &driver);
    a_device_survives_its_drivers(&device, &driver);
    drop(open(&device));
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "a normal end leaves nothing");
}

/// The driver side outlives the kills, and has as many descriptors and mappings as at first.
fn a_driver_survives_its_devices(device: &str, driver: &str) {
    let mut child = Other::start(device);
    let mut own = Own::new(retry(driver));
    own.until("frames come back", |own| own.came > 0);
    let (files, maps) = (open_files(), mappings());
    assert_eq!(maps, 1, "its own memory");
    let (mut dice, mut running) = (Dice(0x9e37_79b9_7f4a_7c15), 0);
    for round in 0..KILLS {
        running += u32::from(own.run_to_kill(round, 200, &mut dice));
        drop(child);
        own.drain();
        own.run_for(dice.below(20));
        child = Other::start(device);
    }
    assert!(running >= LEAST_RUNNING, "frames flowed at {running} of {KILLS} kills of a device");
    own.came = 0;
    own.until("frames come back from the last device", |own| own.came > 0);
    own.until("nothing is kept", |_| (open_files(), mappings()) == (files, maps));
}

fn a_device_survives_its_drivers(device: &str, driver: &str) {
    let mut own = Own::new(open(device));
    let files = open_files();
    let (mut dice, mut running) = (Dice(0x2545_f491_4f6c_dd1d), 0);
    for round in 0..KILLS {
        let child = Other::start(driver);
        running += u32::from(own.run_to_kill(round, 60, &mut dice));
        drop(child);
        own.drain();
        own.run_for(dice.below(3));
    }
    assert!(running >= LEAST_RUNNING, "frames flowed at {running} of {KILLS} kills of a driver");
    own.came = 0;
    let child = Other::start(driver);
    own.until("frames come from the last driver", |own| own.came > 0);
    drop(child);
    own.until("nothing is kept", |_| (open_files(), mappings()) == (files, 0));
}

/// Sends, receives and waits like a worker until this process is killed, for at most `TIMEOUT`.
fn work_until_killed(name: &str) {
    let mut own = Own::new(retry(name));
    own.run_for(TIMEOUT.as_millis() as u64);
}

fn open(name: &str) -> Device {
    let name: DeviceName = name.parse().unwrap();
    Device::open(&name, DeviceOptions::default()).unwrap()
}

/// Opens a device as soon as its other side exists.
fn retry(name: &str) -> Device {
    let (name, begun): (DeviceName, _) = (name.parse().unwrap(), Instant::now());
    loop {
        match Device::open(&name, DeviceOptions::default()) {
            Ok(device) => return device,
            Err(error) => assert!(begun.elapsed() < TIMEOUT, "{error}"),
        }
        rxo_driver::wait::pause(SHORT);
    }
}

/// This side of a ring, the number of frames it received, and the time of the last one.
struct Own {
    device: Device,
    came: u64,
    last: Option<Instant>,
}

impl Own {
    const fn new(device: Device) -> Self {
        Self { device, came: 0, last: None }
    }

    /// Does one turn: sends a frame, and receives the frames that arrived.
    fn turn(&mut self) {
        let Device { source, sink } = &mut self.device;
        let bytes = [0x5a; 60];
        if !sink.is_blocked() {
            let frame = Frame::new(&bytes[..], rxo_frame::Instant::ZERO);
            sink.transmit([frame].into_iter()).unwrap();
        }
        sink.resume().unwrap();
        let mut batch = Vec::new();
        self.came += source.receive(&mut batch, 64).unwrap() as u64;
        self.last = (!batch.is_empty()).then(Instant::now).or(self.last);
        assert!(batch.iter().all(|frame| frame.bytes() == bytes));
        let mut list = WaitList::new();
        list.add(Some(&*source), Interest::Readable);
        list.wait(Some(SHORT)).unwrap();
    }

    /// Works until the instant at which the other side, which has just started, is to be killed: within
    /// `start` milliseconds, or after its first frame. Returns `true` if frames flow.
    fn run_to_kill(&mut self, round: u32, start: u64, dice: &mut Dice) -> bool {
        (self.came, self.last) = (0, None);
        if round.is_multiple_of(4) {
            self.run_for(dice.below(start));
        } else {
            self.until("frames come", |own| own.came > 0);
            self.run_for(dice.below(20));
        }
        self.last.is_some_and(|last| last.elapsed() < RECENT)
    }

    /// Receives the frames that the other side sent before it was killed, so that they are not counted as
    /// frames of the next process.
    fn drain(&mut self) {
        let mut batch = Vec::new();
        while self.device.source.receive(&mut batch, 64).unwrap() > 0 {
            batch.clear();
        }
    }

    fn run_for(&mut self, millis: u64) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(millis) {
            self.turn();
        }
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < TIMEOUT, "waited in vain until {what}");
            self.turn();
        }
    }
}

/// The other side of a ring, in another process. Dropping the value kills it.
struct Other(Child);

impl Other {
    fn start(device: &str) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.stdout(Stdio::null()).stderr(Stdio::null()).env(CHILD, device);
        Self(command.spawn().unwrap())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let folder = env::temp_dir().join(format!("rxo-killed-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn name(&self, kind: &str) -> String {
        format!("{kind}:{}", self.0.join("a.sock").display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Returns the number of mappings of memory that is shared with another side.
fn mappings() -> usize {
    let maps = fs::read_to_string(Path::new("/proc/self/maps")).unwrap();
    maps.lines().filter(|line| line.contains("rxo-virtio")).count()
}

/// A generator of random numbers, which gives the same numbers in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
