//! Packets for sides that accept more or less, against what a network would carry.

use rxo_frame::{Frame, LinkKind};
use rxo_wire::checksum::verify_transport;

use super::*;
use crate::transmit::batch::Messages;
use crate::vhost_user::features::{GUEST_CSUM, GUEST_TSO4};
use crate::virtio_net::samples::{HEADERS_BYTES, large, tcp};

/// A ring with so many places.
#[derive(Default)]
struct Places {
    room: usize,
    packets: Vec<([u8; VIRTIO_HEADER_BYTES], Vec<u8>)>,
}

impl PacketRing for Places {
    fn put<'p>(
        &mut self,
        header: [u8; VIRTIO_HEADER_BYTES],
        bytes: usize,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<()> {
        let packet = pieces.collect::<Vec<_>>().concat();
        assert_eq!(packet.len(), bytes);
        if self.packets.len() == self.room {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        self.packets.push((header, packet));
        Ok(())
    }
}

fn put(frame: Frame<&[u8]>, features: u64, room: usize) -> (io::Result<()>, Places) {
    let mut messages = Messages::with_room(1, 4);
    let mut batch = messages.begin(LinkKind::Ethernet);
    assert!(batch.push(frame, 0, None));
    let mut places = Places { room, ..Places::default() };
    let put = Encoder::new().put(&mut places, Accepts::driver(features), &batch.seal(), 0);
    (put, places)
}

#[test]
fn a_large_send_stays_whole_where_it_can() {
    let bytes = tcp(2_500);
    let (put, places) = put(large(&bytes), GUEST_CSUM | GUEST_TSO4, 8);
    put.unwrap();
    assert_eq!(places.packets.len(), 1);
    let (header, packet) = &places.packets[0];
    assert_eq!(*packet, bytes);
    assert_eq!(VnetHeader::read(header).unwrap().gso(), large(&bytes).gso);
}

#[test]
fn a_large_send_is_segmented_where_it_must() {
    let bytes = tcp(2_500);
    for (features, is_partial) in [(GUEST_CSUM, true), (0, false)] {
        let (put, places) = put(large(&bytes), features, 8);
        put.unwrap();
        let mut payload = Vec::new();
        for (header, packet) in &places.packets {
            let header = VnetHeader::read(header).unwrap();
            assert_eq!((header.gso(), header.checksum().is_partial()), (None, is_partial));
            let parsed = parse(packet).unwrap();
            assert_eq!(verify_transport(&parsed, packet, Summer::detect()), !is_partial);
            payload.extend_from_slice(&packet[HEADERS_BYTES..]);
        }
        assert_eq!(places.packets.len(), 3);
        assert_eq!(payload, bytes[HEADERS_BYTES..]);
    }
}

#[test]
fn a_partial_checksum_is_completed_for_a_guest_that_cannot() {
    let bytes = tcp(100);
    let partial = Frame { gso: None, ..large(&bytes) };
    let (put, places) = put(partial, 0, 1);
    put.unwrap();
    let (header, packet) = &places.packets[0];
    assert_eq!(*header, VnetHeader::default().to_virtio_bytes(1));
    assert!(verify_transport(&parse(packet).unwrap(), packet, Summer::detect()));
}

/// What has left is not sent twice, and what has no room at all is tried again.
#[test]
fn a_ring_that_fills_up_is_told_apart() {
    let bytes = tcp(2_500);
    let (none, _) = put(large(&bytes), 0, 0);
    assert_eq!(none.unwrap_err().raw_os_error(), Some(libc::EAGAIN));
    let (some, places) = put(large(&bytes), 0, 2);
    assert_eq!(some.unwrap_err().raw_os_error(), Some(libc::ENOBUFS));
    assert_eq!(places.packets.len(), 2);
}
