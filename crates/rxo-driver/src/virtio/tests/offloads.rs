//! Tests of GSO frames and checksums in both directions: passed on as far as negotiated, otherwise completed
//! or segmented by the sender.

use rxo_device::FrameSink;
use rxo_frame::{ChecksumStatus, Frame};
use rxo_wire::checksum::{Summer, verify_transport};
use rxo_wire::parse;

use super::super::handshake::WANTED;
use super::{Echo, Socket, guest, receive, rings};
use crate::vhost_user::features::{
    CSUM, GUEST_CSUM, GUEST_TSO4, GUEST_TSO6, GUEST_USO4, GUEST_USO6, HOST_TSO4, HOST_TSO6,
    HOST_USO,
};
use crate::virtio_net::samples::{
    DATAGRAM_HEADERS_BYTES, HEADERS_BYTES, HEADERS_V6_BYTES, large, large_udp, large_v6, tcp,
    tcp_v6, udp,
};

/// A segment, the function that describes it as a GSO frame with a partial checksum, and the length of its
/// headers.
pub(super) type Family = (Vec<u8>, fn(&[u8]) -> Frame<&[u8]>, usize);

/// Returns such a segment for each IP version.
pub(super) fn families() -> [Family; 2] {
    [(tcp(2_500), large, HEADERS_BYTES), (tcp_v6(2_500), large_v6, HEADERS_V6_BYTES)]
}

pub(super) fn is_complete(frame: &[u8]) -> bool {
    verify_transport(&parse(frame).unwrap(), frame, Summer::detect())
}

#[test]
fn offloads_go_both_ways_as_far_as_agreed() {
    let socket = Socket::new("offloads");
    let _echo = Echo::start(&socket.0);
    let to_device = CSUM | HOST_TSO4 | HOST_TSO6;
    let to_driver = GUEST_CSUM | GUEST_TSO4 | GUEST_TSO6;
    for (ring, (bytes, large, headers_bytes)) in
        rings().flat_map(|ring| families().map(|family| (ring, family)))
    {
        // GSO frames stay whole in both directions.
        let mut whole = guest(&socket.0, ring);
        whole.sink.transmit([large(&bytes)].into_iter()).unwrap();
        let came = receive(&mut whole.source, 1);
        assert_eq!((came[0].bytes(), came[0].gso), (&bytes[..], large(&bytes).gso));
        assert_eq!(came[0].checksum, large(&bytes).checksum);
        drop(whole);
        // Segmented here or, for a driver that accepts no GSO frames, by the device.
        for without in [to_device, to_driver, to_device | to_driver] {
            let mut guest = guest(&socket.0, ring & !without);
            guest.sink.transmit([large(&bytes)].into_iter()).unwrap();
            let came = receive(&mut guest.source, 3);
            let mut payload = Vec::new();
            for frame in &came {
                assert_eq!((frame.gso, frame.checksum), (None, ChecksumStatus::Unknown));
                assert!(is_complete(frame.bytes()));
                payload.extend_from_slice(&frame.bytes()[headers_bytes..]);
            }
            assert_eq!(payload, bytes[headers_bytes..], "{without:#x}");
        }
    }
}

/// Each IP version has a feature of its own, which must not affect the other version.
#[test]
fn a_driver_without_one_version_gets_the_segments_of_that_alone() {
    let socket = Socket::new("versions");
    let _echo = Echo::start(&socket.0);
    let features = [[HOST_TSO4, GUEST_TSO4], [HOST_TSO6, GUEST_TSO6]];
    for (n, without) in
        features.into_iter().enumerate().flat_map(|(n, both)| both.map(|it| (n, it)))
    {
        let mut guest = guest(&socket.0, WANTED & !without);
        for (version, (bytes, large, _)) in families().into_iter().enumerate() {
            guest.sink.transmit([large(&bytes)].into_iter()).unwrap();
            let count = if version == n { 3 } else { 1 };
            let came = receive(&mut guest.source, count);
            assert_eq!(came.len(), count, "{without:#x}");
        }
    }
}

/// A partial checksum stays partial if that was negotiated, and is otherwise completed; a complete one stays.
#[test]
fn single_frames_keep_their_checksum_as_far_as_agreed() {
    let socket = Socket::new("singles");
    let _echo = Echo::start(&socket.0);
    let to_device = CSUM | HOST_TSO4 | HOST_TSO6 | HOST_USO;
    let to_driver = GUEST_CSUM | GUEST_TSO4 | GUEST_TSO6 | GUEST_USO4 | GUEST_USO6;
    for ring in rings() {
        for (bytes, large, _) in families() {
            let partial = Frame { gso: None, ..large(&bytes) };
            let mut whole = guest(&socket.0, ring);
            whole.sink.transmit([partial].into_iter()).unwrap();
            let came = receive(&mut whole.source, 1);
            assert_eq!((came[0].bytes(), came[0].checksum), (&bytes[..], partial.checksum));
            assert!(!is_complete(came[0].bytes()));
            drop(whole);
            for without in [to_device, to_driver] {
                let mut guest = guest(&socket.0, ring & !without);
                guest.sink.transmit([partial].into_iter()).unwrap();
                let came = receive(&mut guest.source, 1);
                assert_eq!(came[0].checksum, ChecksumStatus::Unknown, "{without:#x}");
                assert!(is_complete(came[0].bytes()), "{without:#x}");
                let complete = Frame::new(came[0].bytes(), rxo_frame::Instant::ZERO);
                guest.sink.transmit([complete].into_iter()).unwrap();
                let again = receive(&mut guest.source, 1);
                assert_eq!(again[0].bytes(), complete.bytes, "{without:#x}");
            }
        }
    }
}

/// UDP GSO frames in both directions: whole if that was negotiated, otherwise one datagram at a time.
#[test]
fn udp_goes_both_ways_as_far_as_agreed() {
    let socket = Socket::new("udp");
    let _echo = Echo::start(&socket.0);
    let bytes = udp(2_500);
    for ring in rings() {
        let mut whole = guest(&socket.0, ring);
        assert!(whole.sink.capabilities().segments_udp);
        whole.sink.transmit([large_udp(&bytes)].into_iter()).unwrap();
        let came = receive(&mut whole.source, 1);
        assert_eq!((came[0].bytes(), came[0].gso), (&bytes[..], large_udp(&bytes).gso));
        assert_eq!(came[0].checksum, large_udp(&bytes).checksum);
        drop(whole);
        for without in [HOST_USO, GUEST_USO4, GUEST_USO6, HOST_USO | GUEST_USO4 | GUEST_USO6] {
            let mut guest = guest(&socket.0, ring & !without);
            assert_eq!(guest.sink.capabilities().segments_udp, without & HOST_USO == 0);
            guest.sink.transmit([large_udp(&bytes)].into_iter()).unwrap();
            let came = receive(&mut guest.source, 3);
            let payload = |frame: &Frame<_>| frame.bytes()[DATAGRAM_HEADERS_BYTES..].to_vec();
            assert!(came.iter().all(|frame| frame.gso.is_none()));
            let payload: Vec<u8> = came.iter().flat_map(payload).collect();
            assert_eq!(payload, bytes[DATAGRAM_HEADERS_BYTES..], "{without:#x}");
        }
    }
}
