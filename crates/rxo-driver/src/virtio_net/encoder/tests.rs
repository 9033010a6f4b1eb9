//! Packets for sides that accept more or less, against what a network would carry.

use rxo_frame::{Frame, Gather, LinkKind, VlanTag};
use rxo_wire::checksum::verify_transport;

use super::*;
use crate::transmit::batch::Messages;
use crate::vhost_user::features::{GUEST_CSUM, GUEST_TSO4, RSC_EXT};
use crate::virtio_net::samples::{HEADERS_BYTES, large, tcp};

/// A ring with so many places.
#[derive(Default)]
struct Places {
    room: usize,
    /// Longer packets are refused with this error.
    largest: Option<(usize, i32)>,
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
        if let Some((_, error)) = self.largest.filter(|(largest, _)| bytes > *largest) {
            return Err(io::Error::from_raw_os_error(error));
        }
        if self.packets.len() == self.room {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        self.packets.push((header, packet));
        Ok(())
    }
}

impl Places {
    /// The payloads of all packets.
    fn payload(&self) -> Vec<u8> {
        self.packets.iter().flat_map(|(_, packet)| packet[HEADERS_BYTES..].to_vec()).collect()
    }
}

impl Encoder {
    /// Puts one packet for a driver with these features.
    fn put_frame(
        &mut self,
        ring: &mut Places,
        frame: Frame<&[u8]>,
        features: u64,
    ) -> io::Result<()> {
        self.put_packet(ring, frame, features)
    }

    fn put_packet<'a>(
        &mut self,
        ring: &mut Places,
        packet: impl Gather<'a>,
        features: u64,
    ) -> io::Result<()> {
        let mut messages = Messages::with_room(1, 4);
        let mut batch = messages.begin(LinkKind::Ethernet);
        assert!(batch.push(packet, 0, None));
        self.put(ring, Accepts::driver(features), &batch.seal(), 0)
    }
}

fn put(frame: Frame<&[u8]>, features: u64, room: usize) -> (io::Result<()>, Places) {
    let mut places = Places { room, ..Places::default() };
    let put = Encoder::new().put_frame(&mut places, frame, features);
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

/// A packet that was made of seven frames.
#[derive(Clone, Copy)]
struct OfSeven<'a>(Frame<&'a [u8]>);

impl<'a> Gather<'a> for OfSeven<'a> {
    fn offload(self) -> Offload {
        self.0.offload()
    }

    fn vlan(self) -> Option<VlanTag> {
        None
    }

    fn byte_len(self) -> usize {
        self.0.byte_len()
    }

    fn for_each_slice(self, visit: impl FnMut(&'a [u8])) {
        self.0.for_each_slice(visit);
    }

    fn frame_count(self) -> usize {
        7
    }

    fn for_each_frame(self, visit: impl FnMut(Frame<&'a [u8]>)) {
        self.0.for_each_frame(visit);
    }
}

/// The counts take the place of the checksum's offsets, so nobody else could complete it.
#[test]
fn an_aggregate_says_its_segments_to_a_guest_that_asks() {
    let bytes = tcp(2_500);
    let counted = Some(Coalesced { segments: 7, duplicate_acks: 0 });
    let tso = GUEST_CSUM | GUEST_TSO4;
    for (features, is_aggregate, counts) in
        [(tso | RSC_EXT, true, counted), (tso | RSC_EXT, false, None), (tso, true, None)]
    {
        let mut places = Places { room: 8, ..Places::default() };
        let mut encoder = Encoder::new();
        if is_aggregate {
            encoder.put_packet(&mut places, OfSeven(large(&bytes)), features).unwrap();
        } else {
            encoder.put_frame(&mut places, large(&bytes), features).unwrap();
        }
        let (header, packet) = &places.packets[0];
        let header = VnetHeader::read(header).unwrap();
        assert_eq!((header.coalesced(), header.gso()), (counts, large(&bytes).gso));
        let is_complete = verify_transport(&parse(packet).unwrap(), packet, Summer::detect());
        assert_eq!(
            (is_complete, header.checksum().is_partial()),
            (counts.is_some(), counts.is_none())
        );
        assert_eq!(places.payload(), bytes[HEADERS_BYTES..]);
    }
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

/// What has left is not sent twice, and nothing is lost: the same packet given again goes on.
#[test]
fn a_ring_that_fills_up_gets_the_rest_when_there_is_room() {
    let (bytes, other) = (tcp(2_500), tcp(1_500));
    let eagain = |put: io::Result<()>| {
        assert_eq!(put.unwrap_err().raw_os_error(), Some(libc::EAGAIN));
    };
    let mut encoder = Encoder::new();
    let mut places = Places::default();
    eagain(encoder.put_frame(&mut places, large(&bytes), 0));
    for room in [1, 2] {
        places.room = room;
        eagain(encoder.put_frame(&mut places, large(&bytes), 0));
        assert_eq!(places.packets.len(), room);
    }
    places.room = 8;
    encoder.put_frame(&mut places, large(&bytes), 0).unwrap();
    assert_eq!(places.payload(), bytes[HEADERS_BYTES..]);
    assert_eq!(places.packets.len(), 3);
    // The same bytes again are another packet now, and so is one that comes instead.
    encoder.put_frame(&mut places, large(&bytes), 0).unwrap();
    assert_eq!(places.packets.len(), 6);
    places = Places { room: 1, ..Places::default() };
    eagain(encoder.put_frame(&mut places, large(&bytes), 0));
    places = Places { room: 8, ..Places::default() };
    encoder.put_frame(&mut places, large(&other), 0).unwrap();
    assert_eq!(places.payload(), other[HEADERS_BYTES..]);
}

/// A driver with fewer buffers than a GSO frame needs would wait for ever.
#[test]
fn a_gso_frame_larger_than_the_ring_is_segmented() {
    let bytes = tcp(2_500);
    for refusal in [libc::ENOBUFS, libc::EMSGSIZE] {
        let mut places = Places { room: 8, largest: Some((1_100, refusal)), ..Places::default() };
        let features = GUEST_CSUM | GUEST_TSO4;
        Encoder::new().put_frame(&mut places, large(&bytes), features).unwrap();
        assert_eq!(places.payload(), bytes[HEADERS_BYTES..]);
        assert_eq!(places.packets.len(), 3);
    }
    // A single frame waits: a driver may have posted only some of its buffers yet.
    let mut places = Places { room: 8, largest: Some((1_100, libc::ENOBUFS)), ..Places::default() };
    let single = Frame { gso: None, ..large(&bytes) };
    let put = Encoder::new().put_frame(&mut places, single, GUEST_CSUM);
    assert_eq!(put.unwrap_err().raw_os_error(), Some(libc::EAGAIN));
}
