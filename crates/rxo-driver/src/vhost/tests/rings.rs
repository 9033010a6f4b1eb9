//! Tests of rings in guest memory: invalid content, memory that is added and removed, and notifications.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rxo_device::{FrameSink, FrameSource, SourceCounters};
use rxo_frame::{Frame, Instant};

use super::{
    MEMORY_BYTES, Stage, TIMEOUT, USER, addresses, memory_event, region, start, wait_for_reply,
};
use crate::vhost_user::features::{
    DEVICE_OFFERS_PROTOCOL, EVENT_IDX, MQ, PROTOCOL_FEATURES, VERSION_1,
};
use crate::vhost_user::{Region, Request, RingAddresses, RingDescriptor, RingNumber, SharedRegion};
use crate::virtio_net::mapping::memory_file;
use crate::virtio_net::samples::{large, tcp};

/// The memory of a guest, where [`start`] puts its rings.
struct GuestMemory(File);

impl GuestMemory {
    fn new() -> Self {
        Self(memory_file(MEMORY_BYTES).unwrap().into())
    }

    /// Creates memory in which descriptor 0 is a buffer of `bytes` bytes.
    fn with_buffer(bytes: u32) -> Self {
        let memory = Self::new();
        memory.put(&0x8000_u64.to_le_bytes(), 0);
        memory.put(&bytes.to_le_bytes(), 8);
        memory
    }

    /// Creates memory in which descriptor 0 is a writable buffer that is available twice.
    fn with_two_buffers() -> Self {
        let memory = Self::with_buffer(2_048);
        memory.put(&2_u16.to_le_bytes(), 12);
        memory.put(&2_u16.to_le_bytes(), 0x2002);
        memory
    }

    fn put(&self, bytes: &[u8], at: u64) {
        self.0.write_all_at(bytes, at).unwrap();
    }

    fn number(&self, at: u64) -> u16 {
        let mut bytes = [0; 2];
        self.0.read_exact_at(&mut bytes, at).unwrap();
        u16::from_le_bytes(bytes)
    }

    fn shared(&self) -> SharedRegion<OwnedFd> {
        SharedRegion { region: region(), file: self.0.try_clone().unwrap().into() }
    }

    fn table(&self) -> Request {
        Request::SetMemTable(vec![self.shared()])
    }
}

/// Rings continue while memory is plugged and unplugged. QEMU changes a region by removing it and adding it
/// again, and this may be the region with the rings.
#[test]
fn rings_run_while_memory_comes_and_goes_and_stop_while_theirs_is_away() {
    let mut stage = Stage::new("regions");
    let mut front = stage.connect();
    let memory = GuestMemory::with_buffer(72);
    let beside = Region { guest_address: 1 << 20, user_address: USER << 1, ..region() };
    let another = || SharedRegion { region: beside, file: memory_file(MEMORY_BYTES).unwrap() };
    let mut requests = start();
    requests[2] = memory.table();
    requests.insert(0, Request::SetProtocolFeatures(DEVICE_OFFERS_PROTOCOL));
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    let (mut available, mut said) = (0_u16, Vec::new());
    let mut frames_after = |change: Option<Request>| {
        change.iter().for_each(|request| front.request(request, false).unwrap());
        // The device processes the change before it reads the frame.
        stage.device.source.receive(&mut Vec::new(), 64).unwrap();
        available += 1;
        memory.put(&available.to_le_bytes(), 0x2002);
        let received = stage.device.source.receive(&mut Vec::new(), 64).unwrap();
        said.extend(std::iter::from_fn(|| stage.device.sink.take_notice()));
        received
    };
    assert_eq!(frames_after(None), 1);
    assert_eq!(frames_after(Some(Request::AddMemRegion(another()))), 1);
    assert_eq!(frames_after(Some(Request::RemoveMemRegion(beside))), 1);
    assert_eq!(frames_after(Some(Request::AddMemRegion(another()))), 1);
    assert_eq!(frames_after(Some(Request::RemoveMemRegion(region()))), 0, "the rings were there");
    // One frame was waiting and is received once the rings are back; the next follows.
    front.request(&Request::AddMemRegion(memory.shared()), false).unwrap();
    let mut batch = Vec::new();
    assert_eq!(stage.device.source.receive(&mut batch, 64).unwrap(), 1);
    memory.put(&6_u16.to_le_bytes(), 0x2002);
    assert_eq!(stage.device.source.receive(&mut batch, 64).unwrap(), 1);
    assert!(said.iter().all(|line| line.ends_with("a guest has started")), "{said:?}");
    wait_for_reply(&mut front, || stage.device.source.attend());
}

/// A message about one ring does not rebuild the queues of the others, because a front end may send many
/// messages.
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
    // Creating a queue notifies the guest once.
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

/// A guest is notified of the first segments of a packet at once, because it posts buffers for the remaining
/// segments only then.
#[test]
fn a_guest_is_notified_of_segments_whose_frame_has_no_room() {
    let mut stage = Stage::new("segments");
    let mut front = stage.connect();
    let memory = GuestMemory::with_two_buffers();
    let call = crate::virtio_net::Notifier::new().unwrap();
    let mut requests = start();
    requests[2] = memory.table();
    let file = Some(call.as_fd().try_clone_to_owned().unwrap());
    requests.insert(3, Request::SetRingCall(RingDescriptor { ring: 0, file }));
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    stage.device.source.receive(&mut Vec::new(), 64).unwrap();
    // Starting a ring notifies the guest once.
    let mut counter = std::fs::File::from(call.as_fd().try_clone_to_owned().unwrap());
    std::io::Read::read_exact(&mut counter, &mut [0; 8]).unwrap();
    let bytes = tcp(4_000);
    stage.device.sink.transmit([large(&bytes)].into_iter()).unwrap();
    assert!(stage.device.sink.is_blocked(), "two of four segments have room");
    let ready = crate::wait::wait_readable(&[call.as_fd()], Some(Duration::ZERO)).unwrap();
    assert!(!ready.is_none(), "the guest was not notified");
}

/// A guest that has read everything but posted no buffers is not idle while packets wait for it.
#[test]
fn packets_that_wait_for_buffers_are_load() {
    let mut stage = Stage::new("load");
    let mut front = stage.connect();
    let memory = GuestMemory::with_two_buffers();
    let mut requests = start();
    requests[1] = Request::SetFeatures(VERSION_1 | EVENT_IDX);
    requests[2] = memory.table();
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    stage.device.source.receive(&mut Vec::new(), 64).unwrap();
    let unread = |stage: &Stage| stage.device.sink.load().unwrap().unread;
    assert_eq!(unread(&stage), 0);
    let bytes = tcp(100);
    let frame = Frame::new(&bytes[..], Instant::ZERO);
    stage.device.sink.transmit([frame; 5].into_iter()).unwrap();
    assert_eq!(unread(&stage), 5, "two in its buffers, and three that wait");
    // The guest requests a notification for the third packet, so it has read two.
    memory.put(&2_u16.to_le_bytes(), 0x2000 + 4 + 2 * 16);
    assert_eq!(unread(&stage), 3);
    memory.put(&5_u16.to_le_bytes(), 0x2002);
    memory.put(&5_u16.to_le_bytes(), 0x2000 + 4 + 2 * 16);
    stage.device.sink.resume().unwrap();
    assert_eq!((unread(&stage), stage.device.sink.is_blocked()), (0, false));
    let counters = stage.device.sink.counters();
    let copied = (counters.bytes_copied, counters.bytes_copied_aside);
    assert_eq!(copied, (5 * bytes.len() as u64, 3 * bytes.len() as u64), "three waited");
}

/// A flag in the header before a frame.
const NEEDS_CSUM: u8 = 1;

/// Invalid chains do not count as truncated frames, because their length is unknown.
#[test]
fn what_a_guest_does_wrong_has_a_counter_of_its_own() {
    let mut stage = Stage::new("invalid");
    let mut front = stage.connect();
    // First an empty buffer; then one with a frame; then one with a partial checksum, which was not
    // negotiated.
    let memory = GuestMemory::with_buffer(0);
    let mut requests = start();
    requests[2] = memory.table();
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    for (available, bytes, header) in [(1_u16, 0, 0), (2, 72, 0), (3, 72, NEEDS_CSUM)] {
        memory.put(&u32::to_le_bytes(bytes), 8);
        memory.put(&[header], 0x8000);
        memory.put(&available.to_le_bytes(), 0x2002);
        stage.device.source.receive(&mut Vec::new(), 64).unwrap();
        stage.device.source.attend();
    }
    let SourceCounters { frames, invalid, truncated, .. } = stage.device.source.counters();
    assert_eq!((frames, invalid, truncated), (1, 2, 0));
}

/// A front end may omit the descriptor for a ring's notifications. No event reports its frames then, so the
/// worker must poll the ring.
#[test]
fn a_ring_without_notifications_is_polled() {
    let mut stage = Stage::new("polled");
    let mut front = stage.connect();
    let memory = GuestMemory::with_buffer(72);
    let mut requests = start();
    requests[2] = memory.table();
    requests[8] = Request::SetRingKick(RingDescriptor { ring: 1, file: None });
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    stage.turn();
    for available in 1..=3_u16 {
        let begun = crate::clock::now();
        let at = stage.device.source.poll_at().unwrap();
        assert!(at > Instant::ZERO, "nothing is left behind");
        assert!(at <= begun + Duration::from_millis(1), "soon");
        memory.put(&available.to_le_bytes(), 0x2002);
        assert_eq!(stage.device.source.receive(&mut Vec::new(), 64).unwrap(), 1);
    }
    // With a descriptor, frames are reported again.
    let kick = RingDescriptor { ring: 1, file: Some(memory_event()) };
    front.request(&Request::SetRingKick(kick), false).unwrap();
    stage.turn();
    assert_eq!(stage.device.source.poll_at(), None);
}

/// A guest notifies once, and then waits until its frames are read.
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
        assert!(begun.elapsed() < TIMEOUT, "the notification is lost");
        source.attend();
    }
    stage.turn();
    assert_eq!(stage.device.source.poll_at(), None, "it was looked at");
}

#[test]
fn messages_are_answered_while_frames_never_run_out() {
    let mut stage = Stage::new("endless");
    let mut front = stage.connect();
    // All entries of the available ring refer to descriptor 0.
    let memory = GuestMemory::with_buffer(72);
    let mut requests = start();
    requests[2] = memory.table();
    requests.iter().for_each(|request| front.request(request, false).unwrap());
    stage.turn();
    let (mut batch, mut available) = (Vec::new(), 0_u16);
    wait_for_reply(&mut front, || {
        available = available.wrapping_add(1);
        memory.put(&available.to_le_bytes(), 0x2002);
        batch.clear();
        assert_eq!(stage.device.source.receive(&mut batch, 1).unwrap(), 1, "there is always one");
    });
}

/// Both receive rings of a guest with two pairs get packets; each flow uses one ring.
#[test]
fn flows_are_spread_over_the_receive_rings() {
    let mut stage = Stage::new("pairs");
    let mut front = stage.connect();
    let memory = GuestMemory::new();
    let features = VERSION_1 | MQ | PROTOCOL_FEATURES;
    let mut requests = vec![Request::SetFeatures(features), memory.table()];
    for ring in 0..4_u32 {
        let at = u64::from(ring) * 0x4000;
        // One writable descriptor, which is available eight times.
        memory.put(&(at + 0x3000).to_le_bytes(), at);
        memory.put(&2_048_u32.to_le_bytes(), at + 8);
        memory.put(&2_u16.to_le_bytes(), at + 12);
        if ring % 2 == 0 {
            memory.put(&8_u16.to_le_bytes(), at + 0x1002);
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
    let counts = [0, 2].map(|ring| memory.number(ring * 0x4000 + 0x2002));
    assert_eq!(counts.iter().sum::<u16>(), 8, "{counts:?}");
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}
