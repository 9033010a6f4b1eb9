//! Checks that an aggregate matches its segments.

use rxo_frame::{ChecksumStatus, Frame, GsoKind, GsoTunnel, UdpTunnel};

use super::{Merged, Observed, Record, Shown};
use crate::Script;
use crate::naive::{ChecksumField, FixedIds, Reading, Segment, checksum_at, merge, resegment_with};
use crate::oracle::are_fixed;
use crate::script::Form;

/// Checks that header, payload, metadata and records of every aggregate match its segments.
///
/// # Panics
/// If a check fails.
pub fn aggregates_are_right(script: &Script, observed: &Observed) {
    for shown in observed.deliveries() {
        let kinds = usize::from(shown.merged.is_some()) + usize::from(shown.acks.is_some());
        assert_eq!(kinds, usize::from(shown.frames.len() > 1), "{:?}", shown.frames);
        if let Some(merged) = &shown.merged {
            let segments = segments(script, shown);
            sizes_are_right(merged, &segments);
            bytes_are_right(script, shown, merged, &segments);
            records_are_right(script, shown, merged, &segments);
            let first = script.frame(shown.frames[0]);
            assert_eq!(merged.vlan, first.vlan, "{:?}", shown.frames);
        }
    }
}

fn segments(script: &Script, shown: &Shown) -> Vec<Segment> {
    let read = |index: &usize| match script.reading(*index) {
        Reading::Segment(segment) | Reading::Datagram(segment) => *segment,
        other => panic!("frame {index} was merged but is {other:?}"),
    };
    shown.frames.iter().map(read).collect()
}

fn sizes_are_right(merged: &Merged, segments: &[Segment]) {
    let payload: usize = segments.iter().map(|segment| segment.payload.len()).sum();
    let largest = segments.iter().map(|segment| segment.payload.len()).max();
    let kind = match (segments[0].udp_length, segments[0].v6) {
        (Some(_), _) => GsoKind::Udp,
        (None, true) => GsoKind::TcpV6,
        (None, false) => GsoKind::TcpV4,
    };
    assert_eq!(merged.segment_count, segments.len());
    assert_eq!(merged.payload_bytes, payload);
    assert_eq!(merged.byte_len, merged.bytes.len());
    assert_eq!(merged.header_bytes, segments[0].payload_at);
    let gso = merged.gso.expect("an aggregate says how it is to be cut");
    assert_eq!((Some(usize::from(gso.size.get())), gso.kind, gso.ecn), (largest, kind, false));
    assert_eq!(gso.tunnel, tunnel(&segments[0]));
}

/// Returns the tunnel around a segment, in the form that a sink receives.
fn tunnel(segment: &Segment) -> Option<GsoTunnel> {
    let outer = segment.outer.as_ref()?;
    Some(GsoTunnel::udp(UdpTunnel {
        outer_transport: outer.segment.transport_at as u8,
        inner_network: segment.network_at as u8,
        is_outer_v6: outer.segment.v6,
        has_checksum: outer.has_checksum,
    }))
}

/// The forms of the checksum, in the order of [`Merged::headers`].
const FORMS: [(Form, ChecksumField); 3] = [
    (Form::PseudoHeader, ChecksumField::Seed),
    (Form::Complete, ChecksumField::Complete),
    (Form::Verified, ChecksumField::Untouched),
];

fn bytes_are_right(script: &Script, shown: &Shown, merged: &Merged, segments: &[Segment]) {
    let first = script.frame(shown.frames[0]);
    let is_partial = first.checksum.is_partial();
    // Trusted segments may have wrong checksums; then the combined checksum is wrong too.
    let is_right = segments.iter().all(|segment| segment.checksum_ok);
    for ((form, field), header) in FORMS.iter().zip(&merged.headers) {
        let field = if is_partial { ChecksumField::Seed } else { *field };
        let mut expected = merge(first.bytes(), segments, field);
        let mut bytes = [header, &merged.bytes[merged.header_bytes..]].concat();
        let outer = segments[0].outer.as_ref().filter(|outer| outer.has_checksum);
        for shape in [Some(&segments[0]), outer.map(|outer| &outer.segment)].into_iter().flatten() {
            let at = checksum_at(shape);
            match field {
                ChecksumField::Seed => {}
                ChecksumField::Complete => same_sum(&mut expected, &mut bytes, at, is_right),
                // The receiver is told not to verify this checksum.
                ChecksumField::Untouched => {
                    bytes[at..at + 2].copy_from_slice(&expected[at..at + 2]);
                }
            }
        }
        let frames = &shown.frames;
        assert!(bytes == expected, "{frames:?} as {form:?}: {}", difference(&bytes, &expected));
        if *form == script.setup.form {
            assert_eq!(&merged.bytes[..merged.header_bytes], header, "the engine's own form");
            assert_eq!(merged.status, status(field, segments), "{frames:?}");
        }
    }
}

/// Describes the first difference between two packets, with some bytes from there on.
fn difference(seen: &[u8], expected: &[u8]) -> String {
    let at = seen.iter().zip(expected).take_while(|(one, other)| one == other).count();
    let some = |bytes: &[u8]| bytes.iter().skip(at).take(16).copied().collect::<Vec<u8>>();
    let (lengths, seen_there, expected_there) =
        ((seen.len(), expected.len()), some(seen), some(expected));
    format!("at byte {at} {seen_there:02x?} is not {expected_there:02x?}; lengths {lengths:?}")
}

/// Makes both checksum fields comparable: 0 and all ones are the same sum. If a trusted checksum
/// was wrong, the field is not compared.
fn same_sum(expected: &mut [u8], bytes: &mut [u8], at: usize, is_right: bool) {
    let is_zero = |field: &[u8]| matches!(field, [0, 0] | [0xff, 0xff]);
    if !is_right || (is_zero(&expected[at..at + 2]) && is_zero(&bytes[at..at + 2])) {
        bytes[at..at + 2].fill(0);
        expected[at..at + 2].fill(0);
    }
}

fn status(field: ChecksumField, segments: &[Segment]) -> ChecksumStatus {
    match field {
        ChecksumField::Seed => {
            let start = segments[0].transport_at;
            let offset = (checksum_at(&segments[0]) - start) as u16;
            ChecksumStatus::Partial { start: start as u16, offset }
        }
        ChecksumField::Complete | ChecksumField::Untouched => ChecksumStatus::Verified,
    }
}

fn records_are_right(script: &Script, shown: &Shown, merged: &Merged, segments: &[Segment]) {
    let arrival = |index: &usize| script.frame(*index).arrived_at;
    let expected: Vec<Record> = segments
        .iter()
        .zip(&shown.frames)
        .map(|(segment, index)| Record {
            seq: segment.seq,
            ack: segment.ack,
            window: segment.window,
            timestamp: usual_timestamp(&segment.options),
            payload_bytes: segment.payload.len(),
            arrived_at: arrival(index),
        })
        .collect();
    assert_eq!(merged.records, expected, "{:?}", shown.frames);
    let last = &shown.frames[shown.frames.len() - 1];
    assert_eq!(merged.arrivals, (arrival(&shown.frames[0]), arrival(last)));
    let ids: Vec<u16> = segments.iter().map(|segment| segment.id).collect();
    let fixed = (!segments[0].v6).then(|| are_fixed(&ids, segments[0].dont_fragment)).flatten();
    assert_eq!(merged.fixed_id, fixed, "IDs {ids:?}");
    let outer = segments.iter().filter_map(|segment| segment.outer.as_ref());
    let ids: Vec<u16> = outer.filter(|it| !it.segment.v6).map(|it| it.segment.id).collect();
    let fixed = (ids.len() > 1).then(|| ids[0] == ids[1]);
    assert_eq!(merged.fixed_outer_id, fixed, "outer IDs {ids:?}");
}

fn usual_timestamp(options: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| {
        u32::from_be_bytes([options[at], options[at + 1], options[at + 2], options[at + 3]])
    };
    (options.len() >= 12 && options[..4] == [1, 1, 8, 10]).then(|| (word(4), word(8)))
}

/// Checks that segmenting aggregates by their size restores the original packets bit for bit, except for link
/// padding. Applies to datagrams, and to policies that promise it.
///
/// # Panics
/// If a packet differs.
pub fn aggregates_come_apart_again(script: &Script, observed: &Observed) {
    aggregates_come_apart_by(script, observed, resegment_with);
}

/// Checks as [`aggregates_come_apart_again`] does, with the segmentation `resegment`. From the merged
/// packet's bytes, its header offsets, the segment size in bytes and the fixed IPv4 IDs it returns the
/// packets.
///
/// # Panics
/// If a packet differs.
pub fn aggregates_come_apart_by(
    script: &Script,
    observed: &Observed,
    resegment: impl Fn(&[u8], &Segment, usize, FixedIds) -> Vec<Vec<u8>>,
) {
    for shown in observed.deliveries() {
        let Some(merged) = &shown.merged else { continue };
        let segments = segments(script, shown);
        if !script.setup.is_resegmentable() && segments[0].udp_length.is_none() {
            continue;
        }
        let size = merged.gso.map_or(1, |gso| usize::from(gso.size.get()));
        let fixed = FixedIds {
            own: merged.fixed_id.unwrap_or(false),
            outer: merged.fixed_outer_id.unwrap_or(false),
        };
        let cut = resegment(&merged.bytes, &segments[0], size, fixed);
        assert_eq!(cut.len(), shown.frames.len(), "{:?} cut by {size}", shown.frames);
        for ((index, segment), cut) in shown.frames.iter().zip(&segments).zip(cut) {
            let expected = on_the_wire(script.frame(*index), segment, &cut);
            assert!(cut == expected, "frame {index}: {}", difference(&cut, &expected));
        }
    }
}

/// The packet in the form that segmentation must produce. Link padding is removed. The checksum is
/// completed if a local sender left it partial, or if it was wrong on a trusted link. A checksum of
/// zero takes the form that it has in `cut`: one's complement has two zeros, and nothing records
/// which one the sender wrote.
fn on_the_wire(frame: &Frame<Vec<u8>>, segment: &Segment, cut: &[u8]) -> Vec<u8> {
    let end = segment.network_at + segment.packet_bytes();
    let mut expected = frame.bytes()[..end].to_vec();
    let transport = checksum_at(segment);
    let mut fields = vec![(transport, !segment.checksum_ok), (segment.network_at + 10, false)];
    if let Some(outer) = &segment.outer {
        fields.push((checksum_at(&outer.segment), outer.has_checksum && !outer.checksum_ok));
        fields.push((outer.segment.network_at + 10, false));
    }
    for (at, is_free) in fields {
        let is_zero = |bytes: &[u8]| matches!(bytes[at..at + 2], [0, 0] | [0xff, 0xff]);
        if is_free || (is_zero(&expected) && is_zero(cut)) {
            expected[at..at + 2].copy_from_slice(&cut[at..at + 2]);
        }
    }
    expected
}
