//! Tests of aggregates that contain the number of their segments (`VIRTIO_NET_F_RSC_EXT`). The counts replace
//! the offsets of a partial checksum in the header, so neither may be mistaken for the other.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;

use rxo_device::FrameSink;
use rxo_frame::{ChecksumStatus, Offload};
use rxo_vnet::{Coalesced, VnetHeader};

use super::super::handshake::WANTED;
use super::offloads::{families, is_complete};
use super::{Echo, Socket, guest, receive, rings};
use crate::device::{Device, DeviceSink};
use crate::listener::{Access, Listener};
use crate::vhost::{Backend, GuestOptions};
use crate::vhost_user::features::{GUEST_CSUM, RSC_EXT};
use crate::virtio_net::samples::{OfSeven, large, large_udp, tcp, udp};
use crate::virtio_net::{Copying, Link, PacketRing, RingPort, Shared, Side};

/// A device side that calls `give` once, when its guest has started.
fn giving(path: &Path, give: fn(&Shared<Backend>)) -> Echo {
    let socket = path.to_owned();
    Echo::running(path, move |stop| {
        let listener = Listener::bind("vhost:test", &socket, Access::ByUmask).unwrap();
        let backend = Backend::new("vhost:test", listener, 1_500, GuestOptions::default()).unwrap();
        let (backend, mut has_given) = (Shared::new(backend), false);
        while !stop.load(Ordering::Relaxed) {
            backend.lock().attend();
            if !has_given && backend.lock().link().is_some() {
                give(&backend);
                has_given = true;
            }
            thread::yield_now();
        }
    })
}

/// Sends an aggregate of each IP version, and an aggregate of UDP datagrams.
fn give_aggregates(backend: &Shared<Backend>) {
    let mut sink = DeviceSink::new(RingPort::new(backend, "vhost:test", 1_500, Copying::default()));
    for (bytes, large, _) in families() {
        sink.transmit([OfSeven(large(&bytes))].into_iter()).unwrap();
    }
    sink.transmit([OfSeven(large_udp(&udp(2_500)))].into_iter()).unwrap();
}

#[test]
fn an_aggregate_with_counts_comes_whole_with_a_complete_checksum() {
    let socket = Socket::new("counted");
    for ring in rings().map(|ring| ring | RSC_EXT) {
        let _device = giving(&socket.0, give_aggregates);
        let mut guest = guest(&socket.0, ring);
        let came = receive(&mut guest.source, 3);
        for (frame, (bytes, large, headers_bytes)) in came.iter().zip(families()) {
            assert_eq!((frame.gso, frame.checksum), (large(&bytes).gso, ChecksumStatus::Verified));
            assert!(is_complete(frame.bytes()), "{ring:#x}");
            assert_eq!(frame.bytes()[headers_bytes..], bytes[headers_bytes..]);
        }
        let bytes = udp(2_500);
        assert_eq!((came[2].bytes(), came[2].checksum), (&bytes[..], large_udp(&bytes).checksum));
    }
}

/// If counts are not negotiated, which is the default, aggregates keep their partial checksums.
#[test]
fn without_counts_aggregates_keep_their_partial_checksum() {
    let socket = Socket::new("uncounted");
    let _device = giving(&socket.0, give_aggregates);
    let mut guest = guest(&socket.0, WANTED);
    let came = receive(&mut guest.source, 3);
    for (frame, (bytes, large, _)) in came.iter().zip(families()) {
        assert_eq!((frame.bytes(), frame.checksum), (&bytes[..], large(&bytes).checksum));
    }
}

/// An aggregate from a device with counts may leave by another device: each segment has a complete checksum.
#[test]
fn an_aggregate_with_counts_can_be_sent_on() {
    let (first, second) = (Socket::new("first"), Socket::new("second"));
    let (_device, _echo) = (giving(&first.0, give_aggregates), Echo::start(&second.0));
    let (mut from, mut to) = (guest(&first.0, WANTED | RSC_EXT), guest(&second.0, WANTED));
    let came = receive(&mut from.source, 2);
    for (frame, (bytes, _, headers_bytes)) in came.iter().zip(families()) {
        let Device { source, sink } = &mut to;
        sink.transmit([frame.borrowed()].into_iter()).unwrap();
        let segments = receive(source, 3);
        assert!(segments.iter().all(|segment| is_complete(segment.bytes())));
        let payload = segments.iter().flat_map(|segment| &segment.bytes()[headers_bytes..]);
        assert!(payload.eq(&bytes[headers_bytes..]));
    }
}

/// Sends a frame with each of these headers, then a plain frame.
fn give_headers(backend: &Shared<Backend>, headers: &[VnetHeader]) {
    let (bytes, mut backend) = (tcp(2_500), backend.lock());
    let link = backend.link().unwrap();
    for header in headers.iter().chain([&VnetHeader::default()]) {
        let pieces = [&bytes[..]].into_iter();
        link.put(header.to_virtio_bytes(1), bytes.len(), pieces).unwrap();
    }
    link.finish_putting();
}

/// Builds aggregate headers with the given counts of segments and duplicate ACKs.
fn counted(counts: [(u16, u16); 5]) -> [VnetHeader; 5] {
    let bytes = tcp(2_500);
    let offload = Offload { header_bytes: 54, ..rxo_frame::Gather::offload(large(&bytes)) };
    let header = VnetHeader::for_packet(offload, 0);
    counts.map(|(segments, duplicate_acks)| {
        header.with_coalesced(Coalesced { segments, duplicate_acks })
    })
}

/// Wrong counts: counts that no aggregate has, and counts that would be valid checksum offsets.
const COUNTS: [(u16, u16); 5] = [(0, 0), (34, 16), (1, 2), (u16::MAX, u16::MAX), (2, u16::MAX)];

/// Wrong counts do no harm, because no decision depends on them.
#[test]
fn wrong_counts_do_no_harm() {
    let socket = Socket::new("wrong");
    for ring in rings().map(|ring| ring | RSC_EXT) {
        let _device = giving(&socket.0, |backend| give_headers(backend, &counted(COUNTS)));
        let mut guest = guest(&socket.0, ring);
        let (came, bytes) = (receive(&mut guest.source, COUNTS.len() + 1), tcp(2_500));
        for frame in &came[..COUNTS.len()] {
            assert_eq!((frame.bytes(), frame.checksum), (&bytes[..], ChecksumStatus::Verified));
            assert_eq!(frame.gso, large(&bytes).gso);
        }
        assert_eq!(guest.source.counters().invalid, 0);
    }
}

/// Frames with counts are discarded if counts were not negotiated: the device is wrong, and such a GSO frame
/// has no partial checksum.
#[test]
fn counts_that_were_not_agreed_on_are_discarded_and_counted() {
    let socket = Socket::new("unasked");
    for ring in rings().map(|ring| ring | RSC_EXT) {
        for without in [RSC_EXT, GUEST_CSUM] {
            let _device = giving(&socket.0, |backend| give_headers(backend, &counted(COUNTS)));
            let mut guest = guest(&socket.0, ring & !without);
            let came = receive(&mut guest.source, 1);
            assert_eq!((came.len(), came[0].gso), (1, None), "{ring:#x} {without:#x}");
            assert_eq!(guest.source.counters().invalid, COUNTS.len() as u64);
        }
    }
}
