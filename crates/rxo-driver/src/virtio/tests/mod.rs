//! Tests of the driver side against a device side that echoes frames, over real sockets and shared memory in
//! one process. `offloads` tests GSO frames and checksums, `counted` tests aggregates with segment counts. `pieces` tests
//! the rings alone.

mod counted;
mod offloads;
mod pieces;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rxo_device::{FrameSink, FrameSource};
use rxo_frame::Frame;

use super::frontend::Frontend;
use super::handshake::{DriverSettings, WANTED};
use super::kind::device;
use crate::device::{Device, DeviceName, DeviceOptions, DeviceSource};
use crate::vhost::GuestOptions;
use crate::vhost_user::features::{ACK_TEMPLATES, EVENT_IDX, MQ, MRG_RXBUF, RING_PACKED};
use crate::virtio_net::samples::tcp;
use crate::wait::{Interest, WaitList};

/// Maximum time for which a test waits; no machine is so slow.
const TIMEOUT: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(20);

/// A path in a folder of its own, which is removed when it is dropped.
struct Socket(PathBuf);

impl Socket {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("rxo-virtio-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder.join("s"))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(self.0.parent().unwrap());
    }
}

/// A device side that runs on a thread until it is dropped.
struct Echo {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn start(path: &Path) -> Self {
        Self::start_with(path, DeviceOptions::default())
    }

    fn start_with(path: &Path, options: DeviceOptions) -> Self {
        let name: DeviceName = format!("vhost:{}", path.display()).parse().unwrap();
        Self::running(path, move |stop| echo(&name, options, stop))
    }

    /// Starts a device side that runs `work` until it is dropped.
    fn running(path: &Path, work: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = thread::spawn(move || work(&asked));
        let begun = Instant::now();
        while !path.exists() {
            assert!(begun.elapsed() < TIMEOUT);
            thread::yield_now();
        }
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

fn echo(name: &DeviceName, options: DeviceOptions, stop: &AtomicBool) {
    let Device { mut source, mut sink } = Device::open(name, options).unwrap();
    let mut batch = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        sink.resume().unwrap();
        if !sink.is_blocked() && source.receive(&mut batch, 64).unwrap() > 0 {
            sink.transmit(batch.iter().map(Frame::borrowed)).unwrap();
            batch.clear();
            continue;
        }
        wait(&source, SHORT);
    }
}

/// Waits like a worker. Returns `true` if the source may have frames.
fn wait(source: &DeviceSource, time: Duration) -> bool {
    if source.poll_at().is_some_and(|at| at == rxo_frame::Instant::ZERO) {
        return true;
    }
    let mut list = WaitList::new();
    list.add(Some(source), Interest::Readable);
    list.wait(Some(time)).unwrap().has(0)
}

fn guest(path: &Path, wanted: u64) -> Device {
    guest_with(path, DriverSettings { features: wanted, pairs: 1, mtu: 1_500 })
}

fn guest_with(path: &Path, settings: DriverSettings) -> Device {
    device(Frontend::open("virtio:test", path, settings).unwrap(), "virtio:test", 1_500)
}

/// Receives until there are `count` frames.
fn receive(source: &mut DeviceSource, count: usize) -> Vec<Frame<crate::DeviceBuf>> {
    let (mut frames, begun) = (Vec::new(), Instant::now());
    while frames.len() < count {
        assert!(begun.elapsed() < TIMEOUT, "{} of {count} frames came", frames.len());
        if source.receive(&mut frames, 64).unwrap() == 0 {
            assert!(wait(source, TIMEOUT), "no notification came");
        }
    }
    frames
}

/// Feature sets for all combinations of ring layout, buffer kind and notification kind.
fn rings() -> impl Iterator<Item = u64> {
    [RING_PACKED, MRG_RXBUF, EVENT_IDX]
        .into_iter()
        .fold(vec![WANTED], |all, bit| {
            all.iter().flat_map(|features| [*features, features & !bit]).collect()
        })
        .into_iter()
}

#[test]
fn templates_are_for_a_device_that_expands_them() {
    let socket = Socket::new("templates");
    for ack_templates in [false, true] {
        let guest_options = GuestOptions { ack_templates, ..GuestOptions::default() };
        let options = DeviceOptions { guest: guest_options, ..DeviceOptions::default() };
        let echo = Echo::start_with(&socket.0, options);
        let expands = |wanted| guest(&socket.0, wanted).sink.capabilities().expands_acks;
        assert_eq!(expands(WANTED), ack_templates);
        assert!(!expands(WANTED & !ACK_TEMPLATES), "the driver does not want it");
        drop(echo);
    }
}

/// The load of a sink is the number of packets that the back end has not read. A running back end reads all
/// packets; those for a back end that has ended remain.
#[test]
fn load_is_what_the_back_end_has_not_taken() {
    let socket = Socket::new("load");
    let unread = |guest: &Device| guest.sink.load().unwrap().unread;
    for wanted in [WANTED, WANTED & !RING_PACKED] {
        let echo = Echo::start(&socket.0);
        let mut guest = guest(&socket.0, wanted);
        let send = |guest: &mut Device| {
            let sent: Vec<_> = (0..3).map(|_| tcp(100)).collect();
            let frames = sent.iter().map(|bytes| Frame::new(&bytes[..], rxo_frame::Instant::ZERO));
            guest.sink.transmit(frames).unwrap();
        };
        send(&mut guest);
        receive(&mut guest.source, 3);
        let begun = Instant::now();
        while unread(&guest) > 0 {
            assert!(begun.elapsed() < TIMEOUT, "{} are left", unread(&guest));
            thread::yield_now();
        }
        drop(echo);
        send(&mut guest);
        assert_eq!(unread(&guest), 3);
    }
}

/// A device that delays notifications still notifies of every frame.
#[test]
fn moderated_frames_arrive() {
    let socket = Socket::new("moderated");
    let moderation = Duration::from_millis(2);
    let guest_options = GuestOptions { moderation, ..GuestOptions::default() };
    let _echo = Echo::start_with(
        &socket.0,
        DeviceOptions { guest: guest_options, ..DeviceOptions::default() },
    );
    let mut guest = guest(&socket.0, WANTED);
    for _ in 0..20 {
        let sent: Vec<_> = (0..30).map(|_| tcp(100)).collect();
        let frames = sent.iter().map(|bytes| Frame::new(&bytes[..], rxo_frame::Instant::ZERO));
        guest.sink.transmit(frames).unwrap();
        let received = receive(&mut guest.source, sent.len());
        assert!(received.iter().zip(&sent).all(|(frame, bytes)| frame.bytes() == &bytes[..]));
    }
}

#[test]
fn every_kind_of_ring_carries_frames_of_every_size() {
    let socket = Socket::new("sizes");
    let _echo = Echo::start(&socket.0);
    for wanted in rings() {
        let mut guest = guest(&socket.0, wanted);
        let sizes = [60, 100, 1_514, 4_084, 4_085, 9_014, 65_400];
        let sent: Vec<_> = (0..200).map(|n| tcp(sizes[n % sizes.len()])).collect();
        for chunk in sent.chunks(20) {
            let frames = chunk.iter().map(|bytes| Frame::new(&bytes[..], rxo_frame::Instant::ZERO));
            guest.sink.transmit(frames.collect::<Vec<_>>().into_iter()).unwrap();
            let came = receive(&mut guest.source, chunk.len());
            assert!(came.iter().map(Frame::bytes).eq(chunk.iter().map(|bytes| &bytes[..])));
        }
        assert_eq!(guest.sink.counters().dropped, 0, "{wanted:#x}");
    }
}

/// With several pairs of queues all frames arrive, and those of each flow in order.
#[test]
fn several_pairs_of_queues_carry_every_flow_in_order() {
    let socket = Socket::new("pairs");
    let _echo = Echo::start(&socket.0);
    for wanted in rings() {
        let settings = DriverSettings { features: wanted | MQ, pairs: 4, mtu: 1_500 };
        let mut guest = guest_with(&socket.0, settings);
        let of_flow = |n: u16| {
            let mut bytes = tcp(usize::from(n / 8) + 1);
            bytes[34..36].copy_from_slice(&(n % 8).to_be_bytes());
            bytes
        };
        let sent: Vec<_> = (0..200).map(of_flow).collect();
        let frames = sent.iter().map(|bytes| Frame::new(&bytes[..], rxo_frame::Instant::ZERO));
        guest.sink.transmit(frames.collect::<Vec<_>>().into_iter()).unwrap();
        let came = receive(&mut guest.source, sent.len());
        for flow in 0..8 {
            let is_of_flow = |bytes: &&[u8]| bytes[35] == flow;
            let came = came.iter().map(Frame::bytes).filter(is_of_flow);
            assert!(came.eq(sent.iter().map(|bytes| &bytes[..]).filter(is_of_flow)), "{wanted:#x}");
        }
    }
}

/// A back end that starts slowly must not block the worker, which has other devices. Here one thread runs
/// both sides, so the test hangs if one waits for the other.
#[test]
fn a_back_end_is_agreed_with_while_other_work_goes_on() {
    let socket = Socket::new("turns");
    let echo = Echo::start(&socket.0);
    let mut guest = guest(&socket.0, WANTED);
    drop(echo);
    // This listener accepts no connection and sends no reply.
    let silent = std::os::unix::net::UnixListener::bind(&socket.0).unwrap();
    let (bytes, mut came, begun) = (tcp(100), Vec::new(), Instant::now());
    silent.set_nonblocking(true).unwrap();
    let mut silent_end = None;
    while silent_end.is_none() {
        assert!(begun.elapsed() < TIMEOUT, "the driver does not look for a back end");
        guest.source.receive(&mut came, 64).unwrap();
        silent_end = silent.accept().ok();
    }
    guest.source.receive(&mut came, 64).unwrap();
    drop((silent, silent_end));
    std::fs::remove_file(&socket.0).unwrap();
    let name: DeviceName = format!("vhost:{}", socket.0.display()).parse().unwrap();
    let mut device = Device::open(&name, DeviceOptions::default()).unwrap();
    while came.is_empty() {
        assert!(begun.elapsed() < TIMEOUT, "nothing came");
        guest.source.receive(&mut came, 64).unwrap();
        let frame = Frame::new(&bytes[..], rxo_frame::Instant::ZERO);
        device.source.receive(&mut Vec::new(), 64).unwrap();
        device.sink.transmit([frame].into_iter()).unwrap();
    }
    assert_eq!(came[0].bytes(), bytes);
}

/// The notification for the remaining frames was consumed already, so no event wakes the worker for them.
#[test]
fn frames_left_behind_are_worth_a_look_at_once() {
    let socket = Socket::new("left");
    let _echo = Echo::start(&socket.0);
    for wanted in rings() {
        let mut guest = guest(&socket.0, wanted);
        let sent: Vec<_> = (0..10).map(|_| tcp(100)).collect();
        guest
            .sink
            .transmit(sent.iter().map(|it| Frame::new(&it[..], rxo_frame::Instant::ZERO)))
            .unwrap();
        let (mut came, begun) = (Vec::new(), Instant::now());
        while came.len() < sent.len() {
            assert!(begun.elapsed() < TIMEOUT, "{} of 10 frames came", came.len());
            let is_full = guest.source.receive(&mut came, 1).unwrap() == 1;
            let at_once = guest.source.poll_at() == Some(rxo_frame::Instant::ZERO);
            assert!(!is_full || at_once, "a call that was stopped by its budget");
            assert!(wait(&guest.source, TIMEOUT), "no notification came");
        }
    }
}

/// Sends frames until one comes back.
fn echoes(guest: &mut Device) {
    let (bytes, begun) = (tcp(100), Instant::now());
    let mut came = Vec::new();
    while came.is_empty() {
        assert!(begun.elapsed() < TIMEOUT, "nothing comes back");
        let frame = Frame::new(&bytes[..], rxo_frame::Instant::ZERO);
        guest.sink.transmit([frame].into_iter()).unwrap();
        wait(&guest.source, SHORT);
        guest.source.receive(&mut came, 64).unwrap();
    }
    assert_eq!(came[0].bytes(), bytes);
}

#[test]
fn either_side_may_end_and_come_again() {
    let socket = Socket::new("again");
    let mut echo = Echo::start(&socket.0);
    let mut first = guest(&socket.0, WANTED);
    echoes(&mut first);
    for _ in 0..3 {
        drop(echo);
        assert!(!socket.0.exists(), "the file is removed at a normal end");
        echo = Echo::start(&socket.0);
        echoes(&mut first);
    }
    for _ in 0..3 {
        drop(first);
        first = guest(&socket.0, WANTED);
        echoes(&mut first);
    }
    drop(echo);
}

#[test]
fn nobody_there_is_one_line() {
    let socket = Socket::new("nobody");
    let settings = DriverSettings { features: WANTED, pairs: 1, mtu: 1_500 };
    let opened = Frontend::open("virtio:x", &socket.0, settings);
    let line = opened.unwrap_err().to_string();
    assert!(line.starts_with("cannot open virtio:x; nobody listens there; start"), "{line}");
}

/// A device that does not read: the sink keeps a bounded number of packets, drops the others, and continues
/// once there is free space.
#[test]
fn a_stalled_ring_is_bounded_and_counted() {
    let socket = Socket::new("stalled");
    let name: DeviceName = format!("vhost:{}", socket.0.display()).parse().unwrap();
    let (stop, path) = (Arc::new(AtomicBool::new(false)), socket.0.clone());
    let asked = Arc::clone(&stop);
    let driver = thread::spawn(move || {
        let begun = Instant::now();
        while !path.exists() {
            assert!(begun.elapsed() < TIMEOUT);
            thread::yield_now();
        }
        let mut guest = guest(&path, WANTED);
        while !asked.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        let (mut frames, mut count, begun) = (Vec::new(), 0, Instant::now());
        while count < usize::from(super::layout::ENTRIES) + 100 {
            assert!(begun.elapsed() < TIMEOUT, "{count} frames came");
            count += guest.source.receive(&mut frames, 64).unwrap();
            frames.clear();
        }
    });
    let mut stalled = Device::open(&name, DeviceOptions::default()).unwrap();
    let (bytes, begun) = (tcp(100), Instant::now());
    let mut batch = Vec::new();
    let mut given = 0;
    while !stalled.sink.is_blocked() {
        assert!(begun.elapsed() < TIMEOUT);
        stalled.source.receive(&mut batch, 64).unwrap();
        stalled
            .sink
            .transmit([Frame::new(&bytes[..], rxo_frame::Instant::ZERO)].into_iter())
            .unwrap();
        given += 1;
    }
    // Packets before the guest's start were dropped; then the ring accepted as many as it has buffers.
    assert_eq!(stalled.sink.counters().frames, u64::from(super::layout::ENTRIES));
    for _ in 0..10_000 {
        stalled
            .sink
            .transmit([Frame::new(&bytes[..], rxo_frame::Instant::ZERO)].into_iter())
            .unwrap();
        given += 1;
    }
    assert!(stalled.sink.counters().dropped > 0, "more than the backlog holds");
    stop.store(true, Ordering::Relaxed);
    while stalled.sink.is_blocked() {
        assert!(begun.elapsed() < TIMEOUT);
        stalled.source.receive(&mut batch, 64).unwrap();
        stalled.sink.resume().unwrap();
    }
    driver.join().unwrap();
    let counters = stalled.sink.counters();
    assert_eq!(counters.frames + counters.dropped_frames, given);
}
