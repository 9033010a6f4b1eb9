//! Target `vhost-live`: the device `vhost:PATH` as a front end meets it, with its socket, real descriptors and mapped memory.
//!
//! A second thread writes into that memory while the device works on it, so an input does not do the same each time. The
//! target `vhost` is the messages alone, `ring-device` the rings alone; both are exact. A notification that blocks is left
//! out: it stops the thread of its device, as the device says.

mod front;
mod memory;
mod script;

use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rxo_device::{FrameSink, FrameSource};
use rxo_driver::{Device, DeviceOptions, GuestMemory, GuestOptions};
use rxo_frame::{ChecksumStatus, Frame, Gso, GsoKind, LinkKind};
use rxo_vnet::{Invalid, admit};

use front::Front;
use memory::{Scribbler, traces};
use script::Script;

/// Time for which a condition is waited for, which no machine reaches.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The most frames that a call receives.
const BUDGET: usize = 64;

/// Opens a device, does what `data` says to it, and checks that another front end is served afterwards and nothing is left.
///
/// # Panics
/// If a property does not hold.
pub fn run(data: &[u8]) {
    let stage = Stage::new();
    let mut script = Script::new(data);
    let may_be_sparse = script.flag();
    let mut device = Served::open(&stage, may_be_sparse);
    let front = Front::new(&stage, script.word());
    let scribbler = Scribbler::start(front.memory(), script.places());
    let operations = device.follow(front, &mut script);
    scribbler.end();
    device.serves_another(&stage);
    drop(device);
    wait_until("nothing of the front end is left", || !traces(&stage.label));
    crate::operations::count(operations);
}

/// A folder with the device's socket, and a name for the memory of its front end.
struct Stage {
    folder: PathBuf,
    label: String,
}

impl Stage {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let label = format!("rxo-fuzz-{}-{n}", process::id());
        let folder = std::env::temp_dir().join(&label);
        std::fs::create_dir(&folder).expect("a new folder");
        Self { folder, label }
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("s")
    }

    fn open(&self, kind: &str, options: DeviceOptions) -> Device {
        let name = format!("{kind}:{}", self.socket().display()).parse().expect("a valid name");
        Device::open(&name, options).expect("it opens")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The device, and what it was given.
struct Served {
    device: Device,
    given: u64,
    received: u64,
}

impl Served {
    fn open(stage: &Stage, may_be_sparse: bool) -> Self {
        let memory = GuestMemory { may_be_sparse, ..GuestMemory::default() };
        let guest = GuestOptions { memory, ..GuestOptions::default() };
        let device = stage.open("vhost", DeviceOptions { guest, ..DeviceOptions::default() });
        Self { device, given: 0, received: 0 }
    }

    /// Does what the script says, and lets the device run after each step. Returns the number of steps.
    fn follow(&mut self, mut front: Front, script: &mut Script<'_>) -> u64 {
        let mut steps = 0;
        while front.step(script).is_some() {
            steps += 1;
            self.turn(script.flag());
        }
        self.turn(true);
        steps
    }

    /// Lets the device run, and checks what it gives and counts.
    fn turn(&mut self, is_large: bool) {
        let mut batch = Vec::new();
        self.device.source.receive(&mut batch, BUDGET).expect("a guest cannot make it fail");
        assert!(batch.len() <= BUDGET);
        self.received += batch.len() as u64;
        batch.iter().for_each(check);
        self.give(&if is_large { large() } else { small() });
        _ = self.device.sink.take_notice();
        let (source, sink) = (self.device.source.counters(), self.device.sink.counters());
        assert_eq!(source.frames, self.received);
        let kept = self.device.sink.kept_frames();
        assert_eq!(self.given + sink.segments_added, sink.frames + sink.dropped_frames + kept);
    }

    fn give(&mut self, frame: &Frame<Vec<u8>>) {
        self.given += 1;
        let sent = self.device.sink.transmit([frame.borrowed()].into_iter());
        sent.expect("a guest cannot make it fail");
        self.device.sink.resume().expect("a guest cannot make it fail");
    }

    /// A front end that keeps to the rules comes after the other, and has its frames in both directions.
    fn serves_another(&mut self, stage: &Stage) {
        let (mut guest, frame) = (Front::new(stage, 0), small());
        wait_until("the next front end is served", || {
            guest.exchange(&frame.bytes);
            let mut batch = Vec::new();
            self.device.source.receive(&mut batch, BUDGET).expect("a guest cannot make it fail");
            self.give(&frame);
            let has_sent = batch.iter().any(|it| *it.bytes() == frame.bytes[..]);
            has_sent && guest.has_received(&frame.bytes)
        });
    }
}

/// What is said of a frame has been compared with it, unless its headers cannot be read.
fn check<B: AsRef<[u8]>>(frame: &Frame<B>) {
    assert!(frame.bytes().len() <= LARGE_BUFFER_BYTES, "{}", frame.bytes().len());
    let said = (frame.checksum, frame.gso);
    let admitted = admit(LinkKind::Ethernet, frame.bytes(), said);
    assert!(admitted == Ok(said) || admitted == Err(Invalid::Headers), "{said:?}: {admitted:?}");
}

/// More than any frame has.
const LARGE_BUFFER_BYTES: usize = 1 << 17;

fn small() -> Frame<Vec<u8>> {
    rxo_testkit::seg().len(100).frame_at(rxo_frame::Instant::ZERO)
}

/// A GSO frame with more bytes than a buffer of the front end has.
fn large() -> Frame<Vec<u8>> {
    let mut frame = rxo_testkit::seg().len(5_000).frame_at(rxo_frame::Instant::ZERO);
    frame.gso = 1_448.try_into().ok().map(|size| Gso::new(GsoKind::TcpV4, size));
    frame.checksum = ChecksumStatus::Partial { start: 34, offset: 16 };
    frame
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "not within a minute: {what}");
        std::thread::yield_now();
    }
}
