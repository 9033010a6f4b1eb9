//! Tests of front ends that send messages of their own, most of them invalid. A front end can end only its
//! own connection.
//!
//! Here: what messages may say, and that they are answered. `rings`: rings in the memory of a guest, and who is notified.
//! `memory`: what may be shared. `migrated`: logs, records, announcements. `front_ends`: connections that come, go, or cannot be served.

mod front_ends;
mod memory;
mod migrated;
mod rings;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rxo_device::{FrameSink, FrameSource};
use rxo_frame::{Frame, Instant};

use super::{GuestMemory, GuestOptions};
use crate::device::{Device, DeviceName, DeviceOptions};
use crate::vhost_user::features::{ACK_TEMPLATES, PROTOCOL_REPLY_ACK, VERSION_1};
use crate::vhost_user::{
    Channel, Region, Request, RingAddresses, RingDescriptor, RingNumber, SharedRegion,
};
use crate::virtio_net::mapping::{self, memory_file};

/// The device under test, in a folder of its own.
struct Stage {
    folder: PathBuf,
    device: Device,
}

impl Stage {
    fn new(name: &str) -> Self {
        Self::allowing(name, GuestMemory::default())
    }

    /// Creates a device whose guest may share this memory.
    fn allowing(name: &str, memory: GuestMemory) -> Self {
        let guest = GuestOptions { memory, ..GuestOptions::default() };
        let options = DeviceOptions { guest, ..DeviceOptions::default() };
        let folder = std::env::temp_dir().join(format!("rxo-vhost-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let name = format!("vhost:{}", folder.join("s").display()).parse().unwrap();
        Self { device: Device::open(&name, options).unwrap(), folder }
    }

    fn label(&self) -> String {
        format!("vhost:{}", self.folder.join("s").display())
    }

    fn connect(&self) -> Channel {
        Channel::new(UnixStream::connect(self.folder.join("s")).unwrap()).unwrap()
    }

    /// Lets the device run. Returns its notices.
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
/// Maximum time for which a test waits; no machine is so slow.
const TIMEOUT: Duration = Duration::from_secs(30);

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

/// Returns the requests that start both rings at the beginning of the memory, as a driver would.
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
        // ACK templates are offered only if the device expands them, so a front end may not set the feature
        // by default.
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
    // The next front end is accepted normally.
    let mut front = stage.connect();
    start().iter().for_each(|request| front.request(request, false).unwrap());
    assert_eq!(stage.turn().last().unwrap(), &format!("{}: a guest has started", stage.label()));
}

/// A broken ring yields no frames any more, so the connection must not stay open silently.
#[test]
fn a_broken_ring_ends_the_connection() {
    let mut stage = Stage::new("broken");
    let mut front = stage.connect();
    let file = memory_file(MEMORY_BYTES).unwrap();
    // The available index of both rings is further ahead than the rings are long.
    let memory = std::fs::File::from(file.try_clone().unwrap());
    std::os::unix::fs::FileExt::write_all_at(&memory, &1_000_u16.to_le_bytes(), 0x2002).unwrap();
    let mut requests = start();
    requests[2] = Request::SetMemTable(vec![SharedRegion { region: region(), file }]);
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    let said = stage.turn();
    assert!(said.last().unwrap().contains("its guest broke ring"), "{said:?}");
    assert!(front.receive().is_err(), "closed");
}

/// Accessing memory beyond the end of its file would kill a process that is not prepared for it.
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

/// Waits for a reply; calls `meanwhile` repeatedly to let the device run.
fn wait_for_reply(front: &mut Channel, mut meanwhile: impl FnMut()) {
    let begun = std::time::Instant::now();
    front.request(&Request::<OwnedFd>::GetFeatures, false).unwrap();
    while front.receive().unwrap().is_none() {
        assert!(begun.elapsed() < TIMEOUT, "no reply came");
        meanwhile();
    }
}

/// Messages are answered even if nobody waits for frames, because a virtual machine monitor waits for
/// replies, and its guest with it.
#[test]
fn messages_are_answered_while_nobody_wants_frames() {
    let mut stage = Stage::new("unread");
    let mut front = stage.connect();
    wait_for_reply(&mut front, || stage.device.source.attend());
}

/// Messages are answered even if source and sink are dropped, as in a run that waits for its nic.
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
    // The source answers too once the device is open again.
    let mut stage = Stage { device: handle.open(DeviceOptions::default()).unwrap(), folder };
    wait_for_reply(&mut front, || stage.device.source.attend());
    start().iter().for_each(|request| front.request(request, false).unwrap());
    assert!(stage.turn().last().unwrap().ends_with("a guest has started"));
}

/// Mapping memory takes long, and a front end may change it as often as it likes.
#[test]
fn one_change_of_memory_is_served_at_a_time() {
    let mut stage = Stage::new("changes");
    let mut front = stage.connect();
    let protocol = Request::<OwnedFd>::SetProtocolFeatures(PROTOCOL_REPLY_ACK);
    front.request(&protocol, false).unwrap();
    (0..5).for_each(|_| front.request(&table(&[region()]), true).unwrap());
    // Other waiting front ends make no difference.
    let _others = [(); 8].map(|()| stage.connect());
    let (begun, mut replies) = (std::time::Instant::now(), 0);
    while replies < 5 {
        assert!(begun.elapsed() < TIMEOUT, "{replies} replies");
        stage.device.source.attend();
        let at_once = std::iter::from_fn(|| front.receive().unwrap()).count();
        assert!(at_once <= 1, "{at_once} at once");
        replies += at_once;
    }
}

/// Concatenates lists of requests, which contain descriptors and cannot be cloned.
trait ConcatRequests {
    fn concat_requests(self) -> Vec<Request>;
}

impl ConcatRequests for [Vec<Request>; 2] {
    fn concat_requests(self) -> Vec<Request> {
        self.into_iter().flatten().collect()
    }
}
