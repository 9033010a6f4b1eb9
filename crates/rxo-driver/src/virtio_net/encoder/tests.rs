//! Tests of the encoder, for sides that accept different features.

use rxo_frame::{Frame, Gather, VlanTag};
use rxo_wire::checksum::verify_transport;
use rxo_wire::parse;

use std::num::NonZeroU16;

use proptest::prelude::*;

use super::*;
use crate::transmit::batch::{Form, Messages};
use crate::vhost_user::features::{GUEST_CSUM, GUEST_TSO4, GUEST_USO4, GUEST_USO6, RSC_EXT};
use crate::virtio_net::FrameLayout;
use crate::virtio_net::samples::{
    DATAGRAM_HEADERS_BYTES, HEADERS_BYTES, OfSeven, large, large_udp, tcp, udp,
};

/// A ring that accepts `room` packets.
#[derive(Default)]
struct Places {
    room: usize,
    /// The length of the largest packet that the ring accepts, and the error for larger packets.
    largest: Option<(usize, i32)>,
    packets: Vec<([u8; VIRTIO_HEADER_BYTES], Vec<u8>)>,
    /// The number of pieces of each packet that was written.
    pieces: Vec<u64>,
}

impl PacketRing for Places {
    fn put<'p>(
        &mut self,
        header: [u8; VIRTIO_HEADER_BYTES],
        bytes: usize,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<()> {
        let pieces: Vec<_> = pieces.collect();
        let packet = pieces.concat();
        assert_eq!(packet.len(), bytes);
        if let Some((_, error)) = self.largest.filter(|(largest, _)| bytes > *largest) {
            return Err(io::Error::from_raw_os_error(error));
        }
        if self.packets.len() == self.room {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        self.packets.push((header, packet));
        self.pieces.push(pieces.len() as u64);
        Ok(())
    }
}

impl Places {
    /// Returns the payloads of all packets, concatenated.
    fn payload(&self) -> Vec<u8> {
        self.packets.iter().flat_map(|(_, packet)| packet[HEADERS_BYTES..].to_vec()).collect()
    }
}

impl Encoder {
    /// Writes one packet for a driver with these features.
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
        let mut batch = messages.begin(Form::ETHERNET);
        assert!(batch.push(packet, 0, None));
        self.put(ring, Accepts::driver(features), &batch.seal(), 0)
    }
}

fn put(frame: Frame<&[u8]>, features: u64, room: usize) -> (io::Result<()>, Places) {
    let mut places = Places { room, ..Places::default() };
    let put = Encoder::new(Copying::default()).put_frame(&mut places, frame, features);
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
fn datagrams_stay_whole_where_they_can_and_are_segmented_elsewhere() {
    let bytes = udp(2_500);
    let uso = GUEST_CSUM | GUEST_USO4 | GUEST_USO6;
    // The header has no field for the number of datagrams, whatever was negotiated.
    for features in [uso, uso | RSC_EXT] {
        let (put, places) = put(large_udp(&bytes), features, 8);
        put.unwrap();
        let (header, packet) = &places.packets[0];
        let header = VnetHeader::read(header).unwrap();
        assert_eq!((packet, header.gso()), (&bytes, large_udp(&bytes).gso));
        assert_eq!(header.coalesced(), None);
    }
    for features in [0, GUEST_CSUM, GUEST_CSUM | GUEST_TSO4, GUEST_CSUM | GUEST_USO4] {
        let (put, places) = put(large_udp(&bytes), features, 8);
        put.unwrap();
        let payload = |(_, packet): &(_, Vec<u8>)| packet[DATAGRAM_HEADERS_BYTES..].to_vec();
        let lengths: Vec<_> = places.packets.iter().map(|it| payload(it).len()).collect();
        assert_eq!(lengths, [1_000, 1_000, 500]);
        assert!(
            places.packets.iter().flat_map(payload).eq(bytes[DATAGRAM_HEADERS_BYTES..].to_vec())
        );
    }
}

#[test]
fn an_aggregate_of_datagrams_that_is_not_accepted_is_sent_as_its_frames() {
    let bytes = udp(2_500);
    let mut places = Places { room: 8, ..Places::default() };
    let mut encoder = Encoder::new(Copying::default());
    let uso = GUEST_CSUM | GUEST_USO4 | GUEST_USO6 | RSC_EXT;
    encoder.put_packet(&mut places, OfSeven(large_udp(&bytes)), uso).unwrap();
    assert_eq!(places.packets[0].1, bytes, "whole, and its checksum partial");
    let refused = encoder.put_packet(&mut places, OfSeven(large_udp(&bytes)), GUEST_CSUM);
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
}

/// An aggregate tells a guest with this feature the number of its segments. The counts replace the checksum's
/// offsets, so no later side could complete the checksum.
#[test]
fn an_aggregate_says_its_segments_to_a_guest_that_asks() {
    let bytes = tcp(2_500);
    let counted = Some(Coalesced { segments: 7, duplicate_acks: 0 });
    let tso = GUEST_CSUM | GUEST_TSO4;
    for (features, is_aggregate, counts) in
        [(tso | RSC_EXT, true, counted), (tso | RSC_EXT, false, None), (tso, true, None)]
    {
        let mut places = Places { room: 8, ..Places::default() };
        let mut encoder = Encoder::new(Copying::default());
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

/// Written segments are not repeated, and none is lost: a retry with the same packet continues.
#[test]
fn a_ring_that_fills_up_gets_the_rest_when_there_is_room() {
    let (bytes, other) = (tcp(2_500), tcp(1_500));
    let eagain = |put: io::Result<()>| {
        assert_eq!(put.unwrap_err().raw_os_error(), Some(libc::EAGAIN));
    };
    let mut encoder = Encoder::new(Copying::default());
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
    // After it was completed, the same bytes are a new packet, and so is a different packet.
    encoder.put_frame(&mut places, large(&bytes), 0).unwrap();
    assert_eq!(places.packets.len(), 6);
    places = Places { room: 1, ..Places::default() };
    eagain(encoder.put_frame(&mut places, large(&bytes), 0));
    places = Places { room: 8, ..Places::default() };
    encoder.put_frame(&mut places, large(&other), 0).unwrap();
    assert_eq!(places.payload(), other[HEADERS_BYTES..]);
}

/// A GSO frame larger than the ring is segmented: a driver with fewer buffers than the frame needs would
/// otherwise wait forever.
#[test]
fn a_gso_frame_larger_than_the_ring_is_segmented() {
    let bytes = tcp(2_500);
    for refusal in [libc::ENOBUFS, libc::EMSGSIZE] {
        let mut places = Places { room: 8, largest: Some((1_100, refusal)), ..Places::default() };
        let features = GUEST_CSUM | GUEST_TSO4;
        Encoder::new(Copying::default()).put_frame(&mut places, large(&bytes), features).unwrap();
        assert_eq!(places.payload(), bytes[HEADERS_BYTES..]);
        assert_eq!(places.packets.len(), 3);
    }
    // A single frame waits, because the driver may not have posted all its buffers yet.
    let mut places = Places { room: 8, largest: Some((1_100, libc::ENOBUFS)), ..Places::default() };
    let single = Frame { gso: None, ..large(&bytes) };
    let put = Encoder::new(Copying::default()).put_frame(&mut places, single, GUEST_CSUM);
    assert_eq!(put.unwrap_err().raw_os_error(), Some(libc::EAGAIN));
}

/// An aggregate as the engine delivers it: a merged header, and the payload of each frame.
#[derive(Clone, Copy, Debug)]
struct Chain<'a> {
    whole: Frame<&'a [u8]>,
    payloads: &'a [usize],
}

impl<'a> Gather<'a> for Chain<'a> {
    fn offload(self) -> Offload {
        self.whole.offload()
    }

    fn vlan(self) -> Option<VlanTag> {
        self.whole.vlan
    }

    fn byte_len(self) -> usize {
        self.whole.byte_len()
    }

    fn for_each_slice(self, mut visit: impl FnMut(&'a [u8])) {
        let (header, mut rest) = self.whole.bytes.split_at(HEADERS_BYTES);
        visit(header);
        for bytes in self.payloads {
            let payload;
            (payload, rest) = rest.split_at(*bytes);
            visit(payload);
        }
    }

    fn frame_count(self) -> usize {
        self.payloads.len()
    }

    fn for_each_frame(self, _: impl FnMut(Frame<&'a [u8]>)) {
        unreachable!("only refused packets are sent as frames");
    }
}

/// Writes packets, each with the given payload lengths of its frames, for a guest with additional features.
/// Returns the ring and the cost.
fn put_all(
    packets: &[Vec<usize>],
    (tag, asked): (Option<VlanTag>, u64),
    copying: Copying,
) -> (Places, Copies) {
    let mut places = Places { room: packets.len(), ..Places::default() };
    let mut encoder = Encoder::new(copying);
    for payloads in packets {
        let bytes = tcp(payloads.iter().sum());
        let whole = Frame { vlan: tag, ..large(&bytes) };
        let features = GUEST_CSUM | GUEST_TSO4 | asked;
        let put = if let [_] = payloads[..] {
            encoder.put_frame(&mut places, Frame { gso: None, ..whole }, features)
        } else {
            encoder.put_packet(&mut places, Chain { whole, payloads }, features)
        };
        put.unwrap();
    }
    (places, encoder.take_copies())
}

const PATHS: [(CopyPath, u64); 2] = [(CopyPath::Gather, 1), (CopyPath::Linear, 2)];

fn packets() -> impl Strategy<Value = Vec<Vec<usize>>> {
    // A single frame without payload is a pure ACK.
    let single = (0..1_461_usize).prop_map(|bytes| vec![bytes]);
    let aggregate = prop::collection::vec(1..1_461_usize, 2..45);
    prop::collection::vec(prop_oneof![single, aggregate], 1..12)
}

proptest! {
    /// Compares with simple counting: every byte is copied once or twice, and the guest gets the same
    /// packets.
    #[test]
    fn paths_and_layouts_differ_in_copies_and_pieces_alone(
        packets in packets(),
        is_tagged in any::<bool>(),
        is_counted in any::<bool>(),
    ) {
        let tag = is_tagged.then_some(VlanTag { tpid: NonZeroU16::MIN, tci: 7 });
        let form = (tag, if is_counted { RSC_EXT } else { 0 });
        let (expected, _) = put_all(&packets, form, Copying::default());
        let bytes: usize = expected.packets.iter().map(|(_, packet)| packet.len()).sum();
        for (path, times) in PATHS {
            for layout in [FrameLayout::Frames, FrameLayout::Pages] {
                let (places, copies) = put_all(&packets, form, Copying { path, layout });
                prop_assert_eq!(&places.packets, &expected.packets);
                prop_assert_eq!(copies.bytes, times * bytes as u64);
                let pieces = packets.iter().map(|frames| {
                    let is_whole = frames.len() == 1 && (is_tagged || frames[0] == 0);
                    let is_apart = layout == FrameLayout::Pages && !is_whole;
                    frames.len() as u64 + u64::from(is_apart)
                });
                prop_assert_eq!(copies.pieces, pieces.sum::<u64>());
                if path == CopyPath::Linear {
                    prop_assert!(places.pieces.iter().all(|pieces| *pieces == 1));
                }
            }
        }
    }
}

/// Completing or segmenting a packet in this process's memory counts as a copy.
#[test]
fn packets_that_are_changed_are_copied_once_more() {
    let bytes = tcp(2_500);
    let mut places = Places { room: 8, ..Places::default() };
    let mut encoder = Encoder::new(Copying::default());
    let partial = Frame { gso: None, ..large(&bytes) };
    encoder.put_frame(&mut places, partial, 0).unwrap();
    let completed = encoder.take_copies();
    assert_eq!(completed, Copies { bytes: 2 * bytes.len() as u64, pieces: 1 });
    encoder.put_frame(&mut places, large(&bytes), 0).unwrap();
    let segments: usize = places.packets[1..].iter().map(|(_, packet)| packet.len()).sum();
    let segmented = encoder.take_copies();
    assert_eq!(segmented, Copies { bytes: (bytes.len() + segments) as u64, pieces: 3 });
}

/// A packet that a full ring refuses is not counted, but only when a retry succeeds.
#[test]
fn a_refused_packet_does_not_count() {
    let bytes = tcp(500);
    for (path, _) in PATHS {
        let mut encoder = Encoder::new(Copying { path, layout: FrameLayout::Pages });
        let single = Frame { gso: None, ..large(&bytes) };
        let refused = encoder.put_frame(&mut Places::default(), single, GUEST_CSUM);
        assert!(refused.is_err());
        assert_eq!(encoder.take_copies(), Copies::default());
    }
}
