//! Front ends that speak to the device by messages of their own, most of them wrong: whatever one does
//! ends its own connection and nothing else.
//!
//! Here: what messages and rings may say, and that messages are answered and guests notified.
//! `front_ends`: connections that come, go, or cannot be served.

mod front_ends;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rxo_device::{FrameSink, FrameSource};
use rxo_frame::{Frame, Instant};

use crate::device::{Device, DeviceName, DeviceOptions};
use crate::vhost_user::features::{
    ACK_TEMPLATES, DEVICE_OFFERS_PROTOCOL, EVENT_IDX, MQ, PROTOCOL_FEATURES, PROTOCOL_REPLY_ACK,
    VERSION_1,
};
use crate::vhost_user::{
    Channel, Region, Request, RingAddresses, RingDescriptor, RingNumber, SharedRegion,
};
use crate::virtio_net::mapping::{self, memory_file};
use crate::virtio_net::samples::{large, tcp};

/// The device, and what it says.
struct Stage {
    folder: PathBuf,
    device: Device,
}

impl Stage {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("rxo-vhost-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let name = format!("vhost:{}", folder.join("s").display()).parse().unwrap();
        Self { device: Device::open(&name, DeviceOptions::default()).unwrap(), folder }
    }

    fn label(&self) -> String {
        format!("vhost:{}", self.folder.join("s").display())
    }

    fn connect(&self) -> Channel {
        Channel::new(UnixStream::connect(self.folder.join("s")).unwrap()).unwrap()
    }

    /// Lets the device look. Returns what it says.
    fn turn(&mut self) -> Vec<String> {
        let mut batch = Vec::new();
        for _ in 0..3 {
            self.device.source.receive(&mut batch, 64).unwrap();
            let bytes = [0; 60];
            self.device.sink.transmit([Frame::new(&bytes[..], Instant::ZERO)].into_iter()).unwrap();
        }
        std::iter::from_fn(|| self.device.sink.take_notice()).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

const MEMORY_BYTES: u64 = 1 << 16;
const USER: u64 = 1 << 40;
/// Longer than any machine takes.
const PATIENCE: Duration = Duration::from_secs(30);

fn region() -> Region {
    Region { guest_address: 0, bytes: MEMORY_BYTES, user_address: USER, file_offset: 0 }
}

fn table(regions: &[Region]) -> Request {
    let file = || memory_file(MEMORY_BYTES).unwrap();
    let shared = |region: &Region| SharedRegion { region: *region, file: file() };
    Request::SetMemTable(regions.iter().map(shared).collect())
}

fn addresses(ring: u32, descriptors: u64) -> Request {
    let (device, driver) = (USER + 0x4000, USER + 0x2000);
    Request::SetRingAddresses(RingAddresses { ring, flags: 0, descriptors, device, driver, log: 0 })
}

/// Starts both rings at the beginning of the memory, as a driver would.
fn start() -> Vec<Request> {
    let mut requests = vec![Request::SetOwner, Request::SetFeatures(VERSION_1), table(&[region()])];
    for ring in 0..2 {
        let notifications = memory_event();
        requests.extend([
            Request::SetRingSize(RingNumber { ring, number: 16 }),
            addresses(ring, USER),
            Request::SetRingKick(RingDescriptor { ring, file: Some(notifications) }),
        ]);
    }
    requests
}

fn memory_event() -> OwnedFd {
    crate::virtio_net::Notifier::new().unwrap().as_fd().try_clone_to_owned().unwrap()
}

#[test]
fn a_lie_ends_the_connection_in_one_line() {
    let far = Region { user_address: USER << 1, ..region() };
    let rows: Vec<(&str, Vec<Request>, &str)> = vec![
        (
            "beyond",
            vec![table(&[Region { bytes: MEMORY_BYTES + 1, ..region() }])],
            "its file is shorter",
        ),
        ("offset", vec![table(&[Region { file_offset: 1, ..region() }])], "its file is shorter"),
        ("overlap", vec![table(&[region(), far])], "overlaps another region"),
        ("features", vec![Request::SetFeatures(1 << 57)], "were not offered"),
        // Only a card that expands offers it, so no foreign front end may set it.
        ("templates", vec![Request::SetFeatures(ACK_TEMPLATES)], "were not offered"),
        ("ring", vec![Request::GetRingBase(99)], "there is no ring 99"),
        ("size", vec![Request::SetRingSize(RingNumber { ring: 0, number: 0 })], "is impossible"),
        ("address", [start(), vec![addresses(0, 7)]].concat_requests(), "is in no region"),
        ("align", [start(), vec![addresses(0, USER + 1)]].concat_requests(), "unaligned"),
        (
            "end",
            [start(), vec![addresses(1, USER + MEMORY_BYTES - 1)]].concat_requests(),
            "unaligned or not in one region",
        ),
        (
            "no power of two",
            [start(), vec![Request::SetRingSize(RingNumber { ring: 0, number: 7 })]]
                .concat_requests(),
            "power of two",
        ),
        (
            "foreign",
            vec![Request::SetRingKick(RingDescriptor {
                ring: 0,
                file: Some(std::fs::File::open("/dev/null").unwrap().into()),
            })],
            "neither an eventfd nor a file in memory",
        ),
        (
            "file",
            [
                start(),
                vec![Request::SetRingKick(RingDescriptor {
                    ring: 0,
                    file: Some(memory_file(8).unwrap()),
                })],
            ]
            .concat_requests(),
            "notifications cannot be used",
        ),
    ];
    let mut stage = Stage::new("lies");
    for (name, requests, part) in rows {
        let mut front = stage.connect();
        requests.iter().for_each(|request| front.request(request, false).unwrap());
        let said = stage.turn();
        let line = said.last().unwrap();
        assert!(line.contains("closed the connection of a front end"), "{name}: {said:?}");
        assert!(line.contains(part) && !line.contains('\n'), "{name}: {said:?}");
        assert!(front.receive().is_err(), "{name}: closed");
    }
    // And the next one is served.
    let mut front = stage.connect();
    start().iter().for_each(|request| front.request(request, false).unwrap());
    assert_eq!(stage.turn().last().unwrap(), &format!("{}: a guest has started", stage.label()));
}

/// A ring that nothing comes of any more would be silent for ever.
#[test]
fn a_broken_ring_ends_the_connection() {
    let mut stage = Stage::new("broken");
    let mut front = stage.connect();
    let file = memory_file(MEMORY_BYTES).unwrap();
    // The available index of both rings, further ahead than they are long.
    let memory = std::fs::File::from(file.try_clone().unwrap());
    std::os::unix::fs::FileExt::write_all_at(&memory, &1_000_u16.to_le_bytes(), 0x2002).unwrap();
    let mut requests = start();
    requests[2] = Request::SetMemTable(vec![SharedRegion { region: region(), file }]);
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    let said = stage.turn();
    assert!(said.last().unwrap().contains("its guest broke ring"), "{said:?}");
    assert!(front.receive().is_err(), "closed");
}

/// An access beyond the end of a file ends a process that is not prepared for it.
#[test]
fn memory_that_is_taken_away_ends_the_connection() {
    let mut stage = Stage::new("shrink");
    let mut front = stage.connect();
    let file = mapping::unsealed_file(MEMORY_BYTES);
    let memory = std::fs::File::from(file.try_clone().unwrap());
    let mut requests = start();
    requests[2] = Request::SetMemTable(vec![SharedRegion { region: region(), file }]);
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    assert!(stage.turn().last().unwrap().ends_with("a guest has started"));
    memory.set_len(0).unwrap();
    let said = stage.turn();
    assert!(said.last().unwrap().contains("a file of its memory has shrunk"), "{said:?}");
    assert!(front.receive().is_err(), "closed");
}

/// Waits for the reply, and lets the device do something meanwhile.
fn wait_for_reply(front: &mut Channel, mut meanwhile: impl FnMut()) {
    let begun = std::time::Instant::now();
    front.request(&Request::<OwnedFd>::GetFeatures, false).unwrap();
    while front.receive().unwrap().is_none() {
        assert!(begun.elapsed() < PATIENCE, "no reply came");
        meanwhile();
    }
}

/// A machine monitor waits for its replies, and its guest with it.
#[test]
fn messages_are_answered_while_nobody_wants_frames() {
    let mut stage = Stage::new("unread");
    let mut front = stage.connect();
    wait_for_reply(&mut front, || stage.device.source.attend());
}

/// A run that waits for its nic has dropped both ends.
#[test]
fn messages_are_answered_while_no_end_is_open() {
    let folder = std::env::temp_dir().join(format!("rxo-vhost-closed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("s");
    let name: DeviceName = format!("vhost:{}", path.display()).parse().unwrap();
    let handle = name.attach().unwrap();
    drop(handle.open(DeviceOptions::default()).unwrap());
    let mut front = Channel::new(UnixStream::connect(&path).unwrap()).unwrap();
    wait_for_reply(&mut front, || handle.attend());
    // And again by the ends, when they are open.
    let mut stage = Stage { device: handle.open(DeviceOptions::default()).unwrap(), folder };
    wait_for_reply(&mut front, || stage.device.source.attend());
    start().iter().for_each(|request| front.request(request, false).unwrap());
    assert!(stage.turn().last().unwrap().ends_with("a guest has started"));
}

/// To map memory takes long, and a front end may change it as often as it likes.
#[test]
fn one_change_of_memory_is_served_at_a_time() {
    let mut stage = Stage::new("changes");
    let mut front = stage.connect();
    let protocol = Request::<OwnedFd>::SetProtocolFeatures(PROTOCOL_REPLY_ACK);
    front.request(&protocol, false).unwrap();
    (0..5).for_each(|_| front.request(&table(&[region()]), true).unwrap());
    // Others that want to connect change nothing.
    let _others = [(); 8].map(|()| stage.connect());
    let (begun, mut replies) = (std::time::Instant::now(), 0);
    while replies < 5 {
        assert!(begun.elapsed() < PATIENCE, "{replies} replies");
        stage.device.source.attend();
        let at_once = std::iter::from_fn(|| front.receive().unwrap()).count();
        assert!(at_once <= 1, "{at_once} at once");
        replies += at_once;
    }
}

/// Memory is plugged and unplugged while a guest runs. QEMU changes a region by removing it and adding it again,
/// and that may be the one with the rings.
#[test]
fn rings_run_while_memory_comes_and_goes_and_stop_while_theirs_is_away() {
    let mut stage = Stage::new("regions");
    let mut front = stage.connect();
    let file = memory_file(MEMORY_BYTES).unwrap();
    let memory = std::fs::File::from(file.try_clone().unwrap());
    let put = |bytes: &[u8], at| std::os::unix::fs::FileExt::write_all_at(&memory, bytes, at);
    put(&0x8000_u64.to_le_bytes(), 0).unwrap();
    put(&72_u32.to_le_bytes(), 8).unwrap();
    let own = || SharedRegion { region: region(), file: file.try_clone().unwrap() };
    let beside = Region { guest_address: 1 << 20, user_address: USER << 1, ..region() };
    let another = || SharedRegion { region: beside, file: memory_file(MEMORY_BYTES).unwrap() };
    let mut requests = start();
    requests[2] = Request::SetMemTable(vec![own()]);
    requests.insert(0, Request::SetProtocolFeatures(DEVICE_OFFERS_PROTOCOL));
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    let (mut available, mut said) = (0_u16, Vec::new());
    let mut frames_after = |change: Option<Request>| {
        change.iter().for_each(|request| front.request(request, false).unwrap());
        // The device serves the change before it looks for the frame.
        stage.device.source.receive(&mut Vec::new(), 64).unwrap();
        available += 1;
        put(&available.to_le_bytes(), 0x2002).unwrap();
        let received = stage.device.source.receive(&mut Vec::new(), 64).unwrap();
        said.extend(std::iter::from_fn(|| stage.device.sink.take_notice()));
        received
    };
    assert_eq!(frames_after(None), 1);
    assert_eq!(frames_after(Some(Request::AddMemRegion(another()))), 1);
    assert_eq!(frames_after(Some(Request::RemoveMemRegion(beside))), 1);
    assert_eq!(frames_after(Some(Request::AddMemRegion(another()))), 1);
    assert_eq!(frames_after(Some(Request::RemoveMemRegion(region()))), 0, "the rings were there");
    // One frame waited, and comes as soon as the rings are back; the one behind it follows.
    front.request(&Request::AddMemRegion(own()), false).unwrap();
    let mut batch = Vec::new();
    assert_eq!(stage.device.source.receive(&mut batch, 64).unwrap(), 1);
    put(&6_u16.to_le_bytes(), 0x2002).unwrap();
    assert_eq!(stage.device.source.receive(&mut batch, 64).unwrap(), 1);
    assert!(said.iter().all(|line| line.ends_with("a guest has started")), "{said:?}");
    wait_for_reply(&mut front, || stage.device.source.attend());
}

/// A front end may send as many messages as it likes, so that one must not cost all queues.
#[test]
fn a_message_for_a_ring_leaves_the_others_alone() {
    let mut stage = Stage::new("alone");
    let mut front = stage.connect();
    let calls = [0, 1].map(|_| crate::virtio_net::Notifier::new().unwrap());
    let requests = start().into_iter().chain((0..2).map(|ring: u32| {
        let file = Some(calls[ring as usize].as_fd().try_clone_to_owned().unwrap());
        Request::SetRingCall(RingDescriptor { ring, file })
    }));
    requests.for_each(|request| front.request(&request, false).unwrap());
    stage.turn();
    // Making a queue notifies once.
    let is_notified = |call: &crate::virtio_net::Notifier| {
        let ready = crate::wait::wait_readable(&[call.as_fd()], Some(Duration::ZERO)).unwrap();
        !ready.is_none()
    };
    for call in &calls {
        let mut counter = std::fs::File::from(call.as_fd().try_clone_to_owned().unwrap());
        std::io::Read::read_exact(&mut counter, &mut [0; 8]).unwrap();
    }
    front.request(&addresses(0, USER), false).unwrap();
    stage.turn();
    assert_eq!(calls.each_ref().map(is_notified), [true, false]);
}

/// The memory of a guest, and the file of it: one descriptor that the device writes is available twice.
fn two_buffers() -> (OwnedFd, std::fs::File) {
    let file = memory_file(MEMORY_BYTES).unwrap();
    let memory = std::fs::File::from(file.try_clone().unwrap());
    let put = |bytes: &[u8], at| std::os::unix::fs::FileExt::write_all_at(&memory, bytes, at);
    // One descriptor that the device writes, made available twice.
    put(&0x8000_u64.to_le_bytes(), 0).unwrap();
    put(&2_048_u32.to_le_bytes(), 8).unwrap();
    put(&2_u16.to_le_bytes(), 12).unwrap();
    put(&2_u16.to_le_bytes(), 0x2002).unwrap();
    (file, memory)
}

/// The guest makes room for the rest only if it hears of what it got.
#[test]
fn a_guest_is_notified_of_segments_whose_frame_has_no_room() {
    let mut stage = Stage::new("segments");
    let mut front = stage.connect();
    let (file, _) = two_buffers();
    let call = crate::virtio_net::Notifier::new().unwrap();
    let mut requests = start();
    requests[2] = Request::SetMemTable(vec![SharedRegion { region: region(), file }]);
    let file = Some(call.as_fd().try_clone_to_owned().unwrap());
    requests.insert(3, Request::SetRingCall(RingDescriptor { ring: 0, file }));
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    stage.device.source.receive(&mut Vec::new(), 64).unwrap();
    // A ring that starts is notified once.
    let mut counter = std::fs::File::from(call.as_fd().try_clone_to_owned().unwrap());
    std::io::Read::read_exact(&mut counter, &mut [0; 8]).unwrap();
    let bytes = tcp(4_000);
    stage.device.sink.transmit([large(&bytes)].into_iter()).unwrap();
    assert!(stage.device.sink.is_blocked(), "two of four segments have room");
    let ready = crate::wait::wait_readable(&[call.as_fd()], Some(Duration::ZERO)).unwrap();
    assert!(!ready.is_none(), "the guest was not notified");
}

/// A guest that has read everything and posted no buffers is not idle while packets wait for it.
#[test]
fn packets_that_wait_for_buffers_are_load() {
    let mut stage = Stage::new("load");
    let mut front = stage.connect();
    let (file, memory) = two_buffers();
    let put = |bytes: &[u8], at| std::os::unix::fs::FileExt::write_all_at(&memory, bytes, at);
    let mut requests = start();
    requests[1] = Request::SetFeatures(VERSION_1 | EVENT_IDX);
    requests[2] = Request::SetMemTable(vec![SharedRegion { region: region(), file }]);
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    stage.device.source.receive(&mut Vec::new(), 64).unwrap();
    let unread = |stage: &Stage| stage.device.sink.load().unwrap().unread;
    assert_eq!(unread(&stage), 0);
    let bytes = tcp(100);
    let frame = Frame::new(&bytes[..], Instant::ZERO);
    stage.device.sink.transmit([frame; 5].into_iter()).unwrap();
    assert_eq!(unread(&stage), 5, "two in its buffers, and three that wait");
    // It asks for a notification of the third packet: it has read two.
    put(&2_u16.to_le_bytes(), 0x2000 + 4 + 2 * 16).unwrap();
    assert_eq!(unread(&stage), 3);
    put(&5_u16.to_le_bytes(), 0x2002).unwrap();
    put(&5_u16.to_le_bytes(), 0x2000 + 4 + 2 * 16).unwrap();
    stage.device.sink.resume().unwrap();
    assert_eq!((unread(&stage), stage.device.sink.is_blocked()), (0, false));
}

/// A front end may leave out the descriptor of a ring's notifications: nothing reports its frames then, so
/// the worker must look for them.
#[test]
fn a_ring_without_notifications_is_polled() {
    let mut stage = Stage::new("polled");
    let mut front = stage.connect();
    let file = memory_file(MEMORY_BYTES).unwrap();
    let memory = std::fs::File::from(file.try_clone().unwrap());
    let put = |bytes: &[u8], at| std::os::unix::fs::FileExt::write_all_at(&memory, bytes, at);
    put(&0x8000_u64.to_le_bytes(), 0).unwrap();
    put(&72_u32.to_le_bytes(), 8).unwrap();
    let mut requests = start();
    requests[2] = Request::SetMemTable(vec![SharedRegion { region: region(), file }]);
    requests[8] = Request::SetRingKick(RingDescriptor { ring: 1, file: None });
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    stage.turn();
    for available in 1..=3_u16 {
        let begun = crate::clock::now();
        let at = stage.device.source.poll_at().unwrap();
        assert!(at > Instant::ZERO, "nothing is left behind");
        assert!(at <= begun + Duration::from_millis(1), "soon");
        put(&available.to_le_bytes(), 0x2002).unwrap();
        assert_eq!(stage.device.source.receive(&mut Vec::new(), 64).unwrap(), 1);
    }
    // With a descriptor the frames report themselves.
    let kick = RingDescriptor { ring: 1, file: Some(memory_event()) };
    front.request(&Request::SetRingKick(kick), false).unwrap();
    stage.turn();
    assert_eq!(stage.device.source.poll_at(), None);
}

/// A guest notifies once, and then waits until its frames are taken.
#[test]
fn a_notification_that_comes_while_nobody_wants_frames_is_remembered() {
    let mut stage = Stage::new("notified");
    let mut front = stage.connect();
    let kick = crate::virtio_net::Notifier::new().unwrap();
    let file = Some(kick.as_fd().try_clone_to_owned().unwrap());
    let mut requests = start();
    requests[8] = Request::SetRingKick(RingDescriptor { ring: 1, file });
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    stage.turn();
    let source = &mut stage.device.source;
    assert_eq!(source.poll_at(), None, "nothing is left behind");
    kick.notify();
    let begun = std::time::Instant::now();
    while source.poll_at().is_none() {
        assert!(begun.elapsed() < PATIENCE, "the notification is lost");
        source.attend();
    }
    stage.turn();
    assert_eq!(stage.device.source.poll_at(), None, "it was looked at");
}

#[test]
fn messages_are_answered_while_frames_never_run_out() {
    let mut stage = Stage::new("endless");
    let mut front = stage.connect();
    let file = memory_file(MEMORY_BYTES).unwrap();
    let memory = std::fs::File::from(file.try_clone().unwrap());
    let put = |bytes: &[u8], at| std::os::unix::fs::FileExt::write_all_at(&memory, bytes, at);
    // Descriptor 0: a header and a frame. All entries of the available ring name it.
    put(&0x8000_u64.to_le_bytes(), 0).unwrap();
    put(&72_u32.to_le_bytes(), 8).unwrap();
    let mut requests = start();
    requests[2] = Request::SetMemTable(vec![SharedRegion { region: region(), file }]);
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    stage.turn();
    let (mut batch, mut available) = (Vec::new(), 0_u16);
    wait_for_reply(&mut front, || {
        available = available.wrapping_add(1);
        put(&available.to_le_bytes(), 0x2002).unwrap();
        batch.clear();
        assert_eq!(stage.device.source.receive(&mut batch, 1).unwrap(), 1, "there is always one");
    });
}

/// Both receive rings of a guest with two pairs get packets, each flow from one of them.
#[test]
fn flows_are_spread_over_the_receive_rings() {
    let mut stage = Stage::new("pairs");
    let mut front = stage.connect();
    let file = memory_file(MEMORY_BYTES).unwrap();
    let memory = std::fs::File::from(file.try_clone().unwrap());
    let put = |bytes: &[u8], at| std::os::unix::fs::FileExt::write_all_at(&memory, bytes, at);
    let region = SharedRegion { region: region(), file };
    let features = VERSION_1 | MQ | PROTOCOL_FEATURES;
    let mut requests = vec![Request::SetFeatures(features), Request::SetMemTable(vec![region])];
    for ring in 0..4_u32 {
        let at = u64::from(ring) * 0x4000;
        // One descriptor that the device writes, made available eight times.
        put(&(at + 0x3000).to_le_bytes(), at).unwrap();
        put(&2_048_u32.to_le_bytes(), at + 8).unwrap();
        put(&2_u16.to_le_bytes(), at + 12).unwrap();
        if ring % 2 == 0 {
            put(&8_u16.to_le_bytes(), at + 0x1002).unwrap();
        }
        let (descriptors, driver, device) = (USER + at, USER + at + 0x1000, USER + at + 0x2000);
        let addresses = RingAddresses { ring, flags: 0, descriptors, device, driver, log: 0 };
        requests.extend([
            Request::SetRingSize(RingNumber { ring, number: 16 }),
            Request::SetRingAddresses(addresses),
            Request::SetRingKick(RingDescriptor { ring, file: Some(memory_event()) }),
            Request::SetRingEnable(RingNumber { ring, number: 1 }),
        ]);
    }
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    stage.device.source.receive(&mut Vec::new(), 64).unwrap();
    let mut flows = Vec::new();
    for port in 0..8_u16 {
        let mut frame = tcp(100);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        flows.push(frame);
    }
    let frames = flows.iter().map(|bytes| Frame::new(&bytes[..], Instant::ZERO));
    stage.device.sink.transmit(frames.collect::<Vec<_>>().into_iter()).unwrap();
    let used = |ring: u64| {
        let mut index = [0; 2];
        let at = ring * 0x4000 + 0x2002;
        std::os::unix::fs::FileExt::read_exact_at(&memory, &mut index, at).unwrap();
        u16::from_le_bytes(index)
    };
    let counts = [used(0), used(2)];
    assert_eq!(counts.iter().sum::<u16>(), 8, "{counts:?}");
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

/// Requests have descriptors, so they are not cloned.
trait ConcatRequests {
    fn concat_requests(self) -> Vec<Request>;
}

impl ConcatRequests for [Vec<Request>; 2] {
    fn concat_requests(self) -> Vec<Request> {
        self.into_iter().flatten().collect()
    }
}
