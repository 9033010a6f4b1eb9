//! Compares the segments of GSO frames with segments that are built one by one.

use core::num::NonZeroU16;

use proptest::prelude::*;
use rxo_wire::build::BuildError;
use rxo_wire::checksum::{Summer, pseudo_header};
use rxo_wire::segmentation::{
    Checksums, NotSegmentable, Part, Segmenter, Segments, parts, segment,
};
use rxo_wire::{Parsed, TcpFlags, Transport, parse};

use crate::packets::{Shape, TCP, UDP, any_shape};

const COMPLETE: Checksums = Checksums::Complete(Summer::portable());
const BUFFER_BYTES: usize = 4_000;

/// A GSO frame, the payload size of its segments, and `true` if they share one identification.
#[derive(Clone, Debug)]
struct Gso {
    whole: Shape,
    size: NonZeroU16,
    has_fixed_id: bool,
}

fn size(bytes: u16) -> NonZeroU16 {
    NonZeroU16::new(bytes).unwrap()
}

fn any_gso() -> impl Strategy<Value = Gso> {
    let payload = proptest::collection::vec(any::<u8>(), 1..3_000);
    (any_shape(), payload, 1..1_500_u16, any::<bool>()).prop_map(
        |(shape, payload, bytes, has_fixed_id)| Gso {
            whole: Shape { payload, ..shape },
            size: size(bytes),
            has_fixed_id,
        },
    )
}

impl Gso {
    /// Builds each segment as a separate packet: the naive oracle.
    fn segments(&self) -> Vec<Vec<u8>> {
        let count = self.whole.payload.len().div_ceil(self.size.get().into());
        let payloads = self.whole.payload.chunks(self.size.get().into());
        payloads.enumerate().map(|(at, payload)| self.segment(at, count, payload)).collect()
    }

    fn segment(&self, at: usize, count: usize, payload: &[u8]) -> Vec<u8> {
        let whole = &self.whole;
        let mut flags = whole.flags;
        if at > 0 {
            flags &= !TcpFlags::CWR.bits();
        }
        if at + 1 < count {
            flags &= !(TcpFlags::PSH | TcpFlags::FIN).bits();
        }
        let counts_on = !whole.is_v6 && !self.has_fixed_id;
        let offset = at as u32 * u32::from(self.size.get());
        let own = Shape {
            id: if counts_on { whole.id.wrapping_add(at as u16) } else { whole.id },
            seq: whole.seq.wrapping_add(offset),
            flags,
            payload: payload.to_vec(),
            padding: 0,
            ..whole.clone()
        };
        own.frame()
    }

    fn begin<'f>(&self, frame: &'f [u8], checksums: Checksums) -> Segments<'f> {
        let segments = segment(frame, &parse(frame).unwrap(), self.size, checksums).unwrap();
        if self.has_fixed_id { segments.with_fixed_id() } else { segments }
    }
}

fn frames(mut segments: Segments<'_>) -> Vec<Vec<u8>> {
    let mut buffer = [0xa5; BUFFER_BYTES];
    let mut frames = Vec::new();
    let count = segments.remaining();
    while let Some(bytes) = segments.next_into(&mut buffer).unwrap() {
        frames.push(buffer[..bytes].to_vec());
    }
    assert_eq!((frames.len(), segments.remaining()), (count, 0));
    frames
}

fn with_seed(mut frame: Vec<u8>) -> Vec<u8> {
    let parsed = parse(&frame).unwrap();
    let is_udp = matches!(parsed.transport, Transport::Udp(_));
    let (protocol, field) = if is_udp { (UDP, 6) } else { (TCP, 16) };
    let seed = pseudo_header(&parsed.key, protocol, parsed.at.segment_bytes()).fold();
    let at = parsed.at.transport as usize + field;
    frame[at..at + 2].copy_from_slice(&seed.to_be_bytes());
    frame
}

proptest! {
    #[test]
    fn segments_are_the_packets_that_were_built_one_by_one(gso in any_gso()) {
        let frame = gso.whole.frame();
        let parsed = parse(&frame).unwrap();
        if parsed.ip.has_odd_extensions {
            let error = segment(&frame, &parsed, gso.size, COMPLETE).unwrap_err();
            prop_assert_eq!(error, NotSegmentable::Extensions);
            return Ok(());
        }
        prop_assert_eq!(frames(gso.begin(&frame, COMPLETE)), gso.segments());
        let seeds: Vec<_> = gso.segments().into_iter().map(with_seed).collect();
        prop_assert_eq!(frames(gso.begin(&frame, Checksums::Partial)), seeds);
    }

    #[test]
    fn headers_and_payload_apart_are_the_same_frames(gso in any_gso()) {
        let frame = gso.whole.frame();
        prop_assume!(!parse(&frame).unwrap().ip.has_odd_extensions);
        let mut segments = gso.begin(&frame, COMPLETE);
        let mut head = vec![0; segments.header_bytes()];
        let mut apart = Vec::new();
        while let Some(payload) = segments.next_headers(&mut head).unwrap() {
            apart.push([&head, payload].concat());
        }
        prop_assert_eq!(apart, frames(gso.begin(&frame, COMPLETE)));
    }

    #[test]
    fn segments_in_the_middle_differ_in_few_fields(gso in any_gso(), is_partial: bool) {
        let frame = gso.whole.frame();
        let Parsed { at, ip, transport, .. } = parse(&frame).unwrap();
        prop_assume!(!ip.has_odd_extensions);
        let checksums = if is_partial { Checksums::Partial } else { COMPLETE };
        let (headers, payload) = (&frame[..at.payload as usize], &frame[at.payload_range()]);
        let tcp = Segmenter::new(headers, at, gso.size, checksums);
        let udp = Segmenter::of_datagrams(headers, at, gso.size, checksums);
        let is_udp = matches!(transport, Transport::Udp(_));
        let write = |head: &mut [u8], part: Part, own| match is_udp {
            true => udp.unwrap().write(head, part, [own]),
            false => tcp.unwrap().write(head, part, [own]),
        };
        let write_middle = |head: &mut [u8], part: Part, own| match is_udp {
            true => udp.unwrap().write_middle(head, part, [own]),
            false => tcp.unwrap().write_middle(head, part, [own]),
        };
        let mut other = headers.to_vec();
        for part in parts(payload.len(), gso.size) {
            let (mut head, own) = (headers.to_vec(), &payload[part.range()]);
            write(&mut head, part, own).unwrap();
            if part.index == 1 {
                other.clone_from(&head);
            }
            let is_written = write_middle(&mut other, part, own);
            prop_assert_eq!(is_written, part.is_middle());
            prop_assert!(!is_written || other == head);
        }
    }

    #[test]
    fn any_bytes_are_segmented_or_refused(
        gso in any_gso(), at in any::<prop::sample::Index>(), byte: u8,
    ) {
        let mut frame = gso.whole.frame();
        let at = at.index(100.min(frame.len()));
        frame[at] = byte;
        let Ok(parsed) = parse(&frame) else { return Ok(()) };
        if let Ok(mut segments) = segment(&frame, &parsed, gso.size, COMPLETE) {
            let mut payload = Vec::new();
            let mut buffer = [0; BUFFER_BYTES];
            while let Some(bytes) = segments.next_into(&mut buffer).unwrap() {
                let Parsed { at, .. } = parse(&buffer[..bytes]).unwrap();
                payload.extend_from_slice(&buffer[at.payload_range()]);
            }
            prop_assert_eq!(&payload, &frame[parsed.at.payload_range()]);
        }
    }

    #[test]
    fn parts_cover_the_payload_once(payload_bytes in 0_usize..100_000, bytes in 1..3_000_u16) {
        let all: Vec<_> = parts(payload_bytes, size(bytes)).collect();
        prop_assert_eq!(all.len(), parts(payload_bytes, size(bytes)).len());
        prop_assert_eq!(all.iter().filter(|part| part.is_last).count(), payload_bytes.min(1));
        let mut end = 0;
        for (index, part) in all.iter().enumerate() {
            prop_assert_eq!((part.index, part.offset), (index, end));
            prop_assert!(part.bytes == usize::from(bytes) || part.is_last && part.bytes > 0);
            end += part.bytes;
        }
        prop_assert_eq!(end, payload_bytes);
    }
}

#[test]
fn an_ipv6_packet_has_as_much_payload_as_its_length_field_can_say() {
    let payload = vec![7; 65_535 - 20];
    let frame = Shape { is_v6: true, payload, ..Shape::default() }.frame();
    let parsed = parse(&frame).unwrap();
    let mut segments = segment(&frame, &parsed, size(65_515), COMPLETE).unwrap();
    let mut buffer = vec![0; frame.len()];
    assert_eq!(segments.next_into(&mut buffer), Ok(Some(frame.len())));
    assert_eq!(buffer, frame);
}

#[test]
fn a_segment_without_room_is_not_taken() {
    let gso = Gso { whole: Shape::default(), size: size(4), has_fixed_id: false };
    let frame = gso.whole.frame();
    let mut segments = gso.begin(&frame, COMPLETE);
    let error = segments.next_into(&mut [0; 57]).unwrap_err();
    assert_eq!(error, BuildError::NoRoom { needed: 58, given: 57 });
    let error = segments.next_headers(&mut [0; 53]).unwrap_err();
    assert_eq!(error, BuildError::NoRoom { needed: 54, given: 53 });
    assert_eq!(frames(segments), gso.segments());
}

#[test]
fn what_is_no_gso_frame_is_refused() {
    let refused = |shape: Shape| {
        let frame = shape.frame();
        segment(&frame, &parse(&frame).unwrap(), size(100), COMPLETE).unwrap_err()
    };
    let rows = [
        (Shape { fragment: 0x2000, ..Shape::default() }, NotSegmentable::Transport),
        (Shape { payload: vec![], padding: 6, ..Shape::default() }, NotSegmentable::NoPayload),
        (
            Shape { is_v6: true, extensions: vec![(43, vec![0; 6])], ..Shape::default() },
            NotSegmentable::Extensions,
        ),
    ];
    for (shape, why) in rows {
        assert_eq!(refused(shape.clone()), why, "{shape:?}");
    }
    let frame = Shape::default().frame();
    let parsed = parse(&frame).unwrap();
    assert_eq!(
        segment(&frame[..50], &parsed, size(4), COMPLETE).unwrap_err(),
        NotSegmentable::Transport,
        "another frame than the one that was parsed",
    );
}
