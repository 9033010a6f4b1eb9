//! Tests of guests that are migrated while they run, and of back ends that continue where another one
//! stopped.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rxo_device::{FrameSink, FrameSource};
use rxo_frame::{Frame, Instant};
use rxo_virtqueue::{DriverQueue, Layout, Memory, QueueConfig, Segment};

use super::{GuestMemory, MEMORY_BYTES, Stage, USER, memory_event, region, wait_for_reply};
use crate::descriptors;
use crate::device::{DeviceName, DeviceOptions};
use crate::vhost_user::features::{
    DEVICE_OFFERS_PROTOCOL, LOG_ALL, PROTOCOL_FEATURES, PROTOCOL_INFLIGHT_SHMFD, RING_PACKED,
    VERSION_1,
};
use crate::vhost_user::{
    Channel, InflightArea, InflightShape, LogArea, Request, RingAddresses, RingDescriptor,
    RingNumber, SharedRegion,
};
use crate::virtio_net::Notifier;
use crate::virtio_net::mapping::{self, Holes, memory_file, unsealed_file};
use crate::wait::wait_readable;

const SIZE: u16 = 8;
const PAGE_BYTES: usize = 4_096;
const BUFFERS: u64 = 0x6000;
/// The log of the guest's 16 pages: its offset in the file, which is not aligned, and its length in bytes.
const LOG: (u64, u64) = (5, 2);

/// A guest with both rings of a pair of queues, and the driver in it.
struct Guest {
    file: OwnedFd,
    memory: Memory,
    features: u64,
    rings: [QueueConfig; 2],
    receive: DriverQueue,
    send: DriverQueue,
}

impl Guest {
    fn new(layout: Layout) -> Self {
        let file = memory_file(MEMORY_BYTES).unwrap();
        let (mapping, _) = mapping::map(file.as_fd(), 0..MEMORY_BYTES, Holes::Filled).unwrap();
        let mut memory = Memory::new();
        let all = rxo_virtqueue::Region::new(0, 0, Arc::new(mapping), 0, MEMORY_BYTES).unwrap();
        memory.add(all).unwrap();
        let rings = [0, 0x3000].map(|start| QueueConfig::contiguous(layout, SIZE, start));
        let queue = |n: usize| DriverQueue::new(&memory, &rings[n], None).unwrap();
        let packed = if layout == Layout::Packed { RING_PACKED } else { 0 };
        let features = VERSION_1 | PROTOCOL_FEATURES | packed;
        Self { receive: queue(0), send: queue(1), file, memory, features, rings }
    }

    /// Returns the requests with which a front end starts the rings at these positions.
    fn start(&self, bases: [u32; 2], flags: u32) -> Vec<Request> {
        let mut requests = vec![
            Request::SetProtocolFeatures(DEVICE_OFFERS_PROTOCOL),
            Request::SetOwner,
            Request::SetFeatures(self.features),
            Request::SetMemTable(vec![SharedRegion {
                region: region(),
                file: self.file.try_clone().unwrap(),
            }]),
        ];
        for ring in 0..2 {
            let number = |number| RingNumber { ring, number };
            requests.extend([
                Request::SetRingSize(number(SIZE.into())),
                Request::SetRingBase(number(bases[ring as usize])),
                self.addresses(ring, flags),
                Request::SetRingKick(RingDescriptor { ring, file: Some(memory_event()) }),
                Request::SetRingEnable(number(1)),
            ]);
        }
        requests
    }

    fn addresses(&self, ring: u32, flags: u32) -> Request {
        let QueueConfig { descriptors, driver, device, .. } = self.rings[ring as usize];
        let user = |address: u64| USER + address;
        Request::SetRingAddresses(RingAddresses {
            ring,
            flags,
            descriptors: user(descriptors),
            device: user(device),
            driver: user(driver),
            log: device,
        })
    }

    /// Makes the receive buffer of page `n` available, behind the rings, and takes back the buffers that were
    /// used.
    fn post(&mut self, n: u64) {
        while self.receive.take_used().unwrap().is_some() {}
        let buffer = Segment {
            address: BUFFERS + n % 4 * PAGE_BYTES as u64 + 100,
            bytes: 2_048,
            is_writable: true,
        };
        self.receive.post(&[buffer], n as u32).unwrap();
        self.receive.publish();
    }

    fn send(&mut self, bytes: u32, token: u32) {
        let frame = Segment { address: 0xb000, bytes: 12 + bytes, is_writable: false };
        self.send.post(&[frame], token).unwrap();
        self.send.publish();
    }

    fn pages(&self) -> Vec<u8> {
        let mut bytes = vec![0; MEMORY_BYTES as usize];
        assert!(self.memory.read(0, &mut bytes));
        bytes
    }
}

fn request_all(front: &mut Channel, requests: &[Request]) {
    requests.iter().for_each(|request| front.request(request, false).unwrap());
}

fn base(layout: Layout) -> u32 {
    if layout == Layout::Packed { 0x8000_8000 } else { 0 }
}

fn log_area(file: &impl AsFd, (file_offset, bytes): (u64, u64)) -> Request {
    let file = file.as_fd().try_clone_to_owned().unwrap();
    Request::SetLogBase(LogArea { bytes, file_offset, file })
}

const LAYOUTS: [Layout; 2] = [Layout::Split, Layout::Packed];

/// The log names every page that the device writes. The oracle compares the memory before and after, as a
/// front end without a log would have to.
#[test]
fn every_page_that_the_device_writes_is_in_the_log() {
    for layout in LAYOUTS {
        let mut stage = Stage::new(&format!("logged-{layout:?}"));
        let (mut front, mut guest) = (stage.connect(), Guest::new(layout));
        request_all(&mut front, &guest.start([base(layout); 2], 0));
        (0..4).for_each(|n| guest.post(n));
        stage.turn();
        // The order in which QEMU begins a migration: the log, the feature, then the rings.
        let log = File::from(unsealed_file(64));
        request_all(
            &mut front,
            &[log_area(&log, LOG), Request::SetFeatures(guest.features | LOG_ALL)],
        );
        request_all(&mut front, &[guest.addresses(0, 1), guest.addresses(1, 1)]);
        let mut all = [0_u8; 64];
        for round in 4..40 {
            let is_reading = round % 3 == 0;
            if is_reading {
                // The front end takes the bits from the log, and copies the pages.
                log.write_all_at(&[0; LOG.1 as usize], LOG.0).unwrap();
            }
            let before = guest.pages();
            guest.send(60, round as u32);
            // The driver's writes are not the device's.
            let sent = guest.pages();
            let frame = vec![round as u8; 60 + round as usize];
            stage.device.source.receive(&mut Vec::new(), 64).unwrap();
            stage
                .device
                .sink
                .transmit([Frame::new(&frame[..], Instant::ZERO)].into_iter())
                .unwrap();
            let after = guest.pages();
            log.read_exact_at(&mut all, 0).unwrap();
            let is_marked = |page: usize| all[LOG.0 as usize + page / 8] >> (page % 8) & 1 == 1;
            let pages = sent.chunks(PAGE_BYTES).zip(after.chunks(PAGE_BYTES)).enumerate();
            let changed: Vec<_> =
                pages.filter(|(_, (old, new))| old != new).map(|(page, _)| page).collect();
            assert!(changed.len() >= 2 && before != after, "{changed:?}");
            assert!(changed.iter().all(|page| is_marked(*page)), "{changed:?} {all:?}");
            let untouched = 12..16;
            assert!(!untouched.into_iter().any(is_marked), "a log of everything says nothing");
            while guest.send.take_used().unwrap().is_some() {}
            guest.post(round);
        }
        // Only the log was written.
        assert!(all[..LOG.0 as usize].iter().chain(&all[7..]).all(|byte| *byte == 0));
        // Without the feature the log is left alone.
        request_all(&mut front, &[Request::SetFeatures(guest.features)]);
        stage.turn();
        log.write_all_at(&[0; LOG.1 as usize], LOG.0).unwrap();
        guest.post(40);
        stage.turn();
        log.read_exact_at(&mut all, 0).unwrap();
        assert_eq!(all, [0; 64]);
    }
}

/// A front end can be notified when the log changes.
#[test]
fn changes_of_the_log_are_reported() {
    let mut stage = Stage::new("reported");
    let (mut front, mut guest) = (stage.connect(), Guest::new(Layout::Split));
    request_all(&mut front, &guest.start([0; 2], 0));
    let call = Notifier::new().unwrap();
    let report = Request::SetLogFd(call.as_fd().try_clone_to_owned().unwrap());
    request_all(&mut front, &[log_area(&memory_file(64).unwrap(), LOG), report]);
    stage.turn();
    let is_told = || !wait_readable(&[call.as_fd()], Some(Duration::ZERO)).unwrap().is_none();
    assert!(!is_told());
    request_all(&mut front, &[Request::SetFeatures(guest.features | LOG_ALL)]);
    guest.post(0);
    stage.turn();
    assert!(is_told());
}

#[test]
fn a_log_that_lies_is_refused_and_one_that_is_too_small_is_said_once() {
    let rows: [(&str, OwnedFd, (u64, u64), &str); 4] = [
        ("short", memory_file(4_096).unwrap(), (0, 4_097), "its file is shorter"),
        ("far", memory_file(4_096).unwrap(), (4_090, 7), "its file is shorter"),
        ("empty", memory_file(4_096).unwrap(), (0, 0), "are no log of dirty pages"),
        ("holes", unsealed_file(1 << 20), (0, 1 << 20), "has holes"),
    ];
    let allowed = GuestMemory { may_be_sparse: false, ..GuestMemory::default() };
    let mut stage = Stage::allowing("lying-logs", allowed);
    for (name, file, area, part) in rows {
        let (mut front, guest) = (stage.connect(), Guest::new(Layout::Split));
        request_all(&mut front, &guest.start([0; 2], 0));
        request_all(&mut front, &[log_area(&file, area)]);
        let said = stage.turn();
        assert!(said.last().unwrap().contains(part), "{name}: {said:?}");
        assert!(front.receive().is_err(), "{name}: closed");
        drop(front);
        stage.turn();
    }
    let (mut front, mut guest) = (stage.connect(), Guest::new(Layout::Split));
    request_all(&mut front, &guest.start([0; 2], 0));
    stage.turn();
    // The log covers eight pages of sixteen.
    let log = File::from(memory_file(4_096).unwrap());
    request_all(
        &mut front,
        &[log_area(&log, (8, 1)), Request::SetFeatures(guest.features | LOG_ALL)],
    );
    (0..6).for_each(|n| guest.post(n));
    let mut said = stage.turn();
    said.extend(stage.turn());
    let lines = said.iter().filter(|line| line.contains("does not cover the memory of the guest"));
    assert_eq!(lines.count(), 1, "{said:?}");
    let mut bytes = [0; 17];
    log.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!((bytes[..8].to_vec(), bytes[9..].to_vec()), (vec![0; 8], vec![0; 8]));
    assert_ne!(bytes[8], 0);
}

/// Asks for a file for chains in flight, which comes with the reply.
fn ask_for_file(stage: &mut Stage, front: &mut Channel, shape: InflightShape) -> Option<File> {
    let protocol = Request::SetProtocolFeatures(DEVICE_OFFERS_PROTOCOL);
    request_all(front, &[protocol, Request::GetInflight(shape)]);
    stage.turn();
    let mut bytes = [0; 64];
    let received = descriptors::receive(front.as_fd(), &mut bytes, libc::MSG_DONTWAIT).ok()?;
    if received.count == 0 {
        return None;
    }
    assert_eq!(received.count, 36, "a header and 24 bytes");
    assert_eq!(bytes[28..32], [shape.rings.to_ne_bytes(), shape.ring_size.to_ne_bytes()].concat());
    received.files.into_iter().next().map(File::from)
}

const SHAPE: InflightShape = InflightShape { rings: 2, ring_size: SIZE };

fn inflight_area(file: &File) -> Request {
    let bytes = file.metadata().unwrap().len();
    let file = file.try_clone().unwrap().into();
    Request::SetInflight(InflightArea { shape: SHAPE, bytes, file_offset: 0, file })
}

/// A back end continues where a killed one was, although the front end does not know its position.
#[test]
fn a_back_end_goes_on_where_a_killed_one_was() {
    for layout in LAYOUTS {
        let mut guest = Guest::new(layout);
        let mut stage = Stage::new(&format!("killed-{layout:?}"));
        let mut front = stage.connect();
        request_all(&mut front, &[Request::SetFeatures(guest.features)]);
        let file = ask_for_file(&mut stage, &mut front, SHAPE).unwrap();
        for life in 0..5_u32 {
            let mut requests = guest.start([base(layout); 2], 0);
            requests.insert(1, inflight_area(&file));
            request_all(&mut front, &requests);
            stage.turn();
            for n in 0..3 {
                guest.send(60, n);
                guest.post(n.into());
            }
            let mut batch = Vec::new();
            stage.device.source.receive(&mut batch, 64).unwrap();
            assert_eq!(batch.len(), 3, "life {life}");
            let bytes = [7; 60];
            let frames = (0..3).map(|_| Frame::new(&bytes[..], Instant::ZERO));
            stage.device.sink.transmit(frames).unwrap();
            for queue in [&mut guest.send, &mut guest.receive] {
                let used = std::iter::from_fn(|| queue.take_used().unwrap()).count();
                assert_eq!(used, 3, "life {life}");
            }
            drop((batch, stage));
            stage = Stage::new(&format!("killed-{layout:?}"));
            front = stage.connect();
        }
    }
}

/// A later process of rxo gets the device, with its front end and its rings. Neither the front end nor the
/// guest notices.
#[test]
fn another_process_goes_on_with_rings_and_front_end() {
    for layout in LAYOUTS {
        let folder = std::env::temp_dir().join(format!("rxo-vhost-heir-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("s");
        let name: DeviceName = format!("vhost:{}", path.display()).parse().unwrap();
        let mut handle = name.attach().unwrap();
        let mut device = handle.open(DeviceOptions::default()).unwrap();
        let mut front = Channel::new(UnixStream::connect(&path).unwrap()).unwrap();
        let mut guest = Guest::new(layout);
        request_all(&mut front, &guest.start([base(layout); 2], 0));
        let log = log_area(&unsealed_file(64), LOG);
        request_all(&mut front, &[log, Request::SetFeatures(guest.features | LOG_ALL)]);
        (0..4).for_each(|_| _ = device.source.receive(&mut Vec::new(), 64).unwrap());
        for life in 0..4_u32 {
            (0..3).for_each(|n| guest.send(60, n));
            (0..3).for_each(|n| guest.post(n));
            let mut batch = Vec::new();
            device.source.receive(&mut batch, 64).unwrap();
            assert_eq!(batch.len(), 3, "life {life}");
            let bytes = [7; 60];
            let frames = (0..3).map(|_| Frame::new(&bytes[..], Instant::ZERO));
            device.sink.transmit(frames).unwrap();
            for queue in [&mut guest.send, &mut guest.receive] {
                let used = std::iter::from_fn(|| queue.take_used().unwrap()).count();
                assert_eq!(used, 3, "life {life}");
            }
            // Frames that the guest sends meanwhile wait in its ring.
            guest.send(60, 3);
            drop((batch, device));
            let (handed, position) = (handle.hand_over().unwrap(), handle.position().unwrap());
            let next = name.inherit(handed, 1).unwrap();
            device = next.open(DeviceOptions::default()).unwrap();
            next.go_on_at(position).unwrap();
            // The other process ends without closing anything properly.
            std::mem::forget(std::mem::replace(&mut handle, next));
            assert_eq!(device.source.receive(&mut Vec::new(), 64).unwrap(), 1, "life {life}");
            while guest.send.take_used().unwrap().is_some() {}
        }
        wait_for_reply(&mut front, || device.source.attend());
        drop((device, handle));
        assert!(path.exists(), "a process that fails must not take the socket from the other");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// The device is charged for files for chains in flight, and a front end can keep any number of them.
/// Therefore their number is bounded.
#[test]
fn files_for_chains_in_flight_are_bounded_and_then_no_longer_offered() {
    let mut stage = Stage::new("bounded");
    let shape = InflightShape { rings: 16, ring_size: 32_768 };
    let mut front = stage.connect();
    request_all(&mut front, &[Request::SetFeatures(VERSION_1)]);
    let files: Vec<_> =
        std::iter::from_fn(|| ask_for_file(&mut stage, &mut front, shape)).take(99).collect();
    assert_eq!(files.len(), 3, "8 MiB each");
    assert!(front.receive().is_err(), "closed");
    let small = InflightShape { rings: 1, ring_size: 1 };
    let mut front = stage.connect();
    assert!(ask_for_file(&mut stage, &mut front, small).is_some(), "a little is left");
    let rest = InflightShape { rings: 1, ring_size: 32_768 };
    while ask_for_file(&mut stage, &mut front, rest).is_some() {}
    let mut front = stage.connect();
    request_all(&mut front, &[Request::GetProtocolFeatures]);
    stage.turn();
    assert!(front.receive().unwrap().is_some(), "and front ends are served");
}

#[test]
fn records_of_other_rings_are_refused() {
    let rows: [(&str, InflightShape, u64, &str); 3] = [
        ("rings", InflightShape { rings: 1, ring_size: SIZE }, 4_096, "cannot be recorded"),
        ("size", InflightShape { rings: 2, ring_size: SIZE / 2 }, 4_096, "cannot be recorded"),
        ("bytes", SHAPE, 200, "too short or unaligned"),
    ];
    let mut stage = Stage::new("records");
    for (name, shape, bytes, part) in rows {
        let (mut front, guest) = (stage.connect(), Guest::new(Layout::Split));
        request_all(&mut front, &guest.start([0; 2], 0));
        let file = memory_file(4_096).unwrap();
        let area = InflightArea { shape, bytes, file_offset: 0, file };
        request_all(&mut front, &[Request::SetInflight(area)]);
        let said = stage.turn();
        assert!(said.last().unwrap().contains(part), "{name}: {said:?}");
        assert!(front.receive().is_err(), "{name}: closed");
        drop(front);
        stage.turn();
    }
}

/// A guest is announced once for each request, so that switches learn its new place.
#[test]
fn a_guest_is_announced_once_for_each_request() {
    let mut stage = Stage::new("announced");
    let (mut front, mut guest) = (stage.connect(), Guest::new(Layout::Split));
    request_all(&mut front, &guest.start([0; 2], 0));
    stage.turn();
    let address = [0x52, 0x54, 0, 0, 0, 9];
    request_all(&mut front, &[Request::SendRarp(address)]);
    guest.send(60, 0);
    let mut batch = Vec::new();
    stage.device.source.receive(&mut batch, 64).unwrap();
    assert_eq!(batch.len(), 2, "and the guest's own frame");
    let is_own = |frame: &&[u8]| frame[0] != 0xff;
    let frames: Vec<&[u8]> = batch.iter().map(|frame| frame.bytes.as_ref()).collect();
    let frame = *frames.iter().find(|frame| !is_own(frame)).unwrap();
    assert_eq!((frame.len(), &frame[..6], &frame[6..12]), (60, &[0xff; 6][..], &address[..]));
    assert_eq!(frame[12..22], [0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3]);
    assert_eq!((&frame[22..28], &frame[32..38]), (&address[..], &address[..]));
    assert_eq!(frames.iter().filter(|frame| is_own(frame)).count(), 1);
    assert_eq!(stage.device.source.receive(&mut Vec::new(), 64).unwrap(), 0, "once");
}

/// A device that offers no record refuses all requests about records.
#[test]
fn the_record_is_a_feature_of_its_own() {
    let without = DEVICE_OFFERS_PROTOCOL & !PROTOCOL_INFLIGHT_SHMFD;
    let mut stage = Stage::new("feature");
    let mut front = stage.connect();
    request_all(&mut front, &[Request::SetProtocolFeatures(without), Request::GetInflight(SHAPE)]);
    let said = stage.turn();
    assert!(said.last().unwrap().contains("needs a feature that was not agreed on"), "{said:?}");
}
