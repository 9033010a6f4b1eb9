//! Segmentation undoes coalescing, for arbitrary packets.

mod harness;

use std::num::NonZeroU16;

use proptest::prelude::proptest;
use rxo_frame::LinkKind;
use rxo_testkit::naive::{FixedIds, Segment};
use rxo_testkit::promise::aggregates_come_apart_by;
use rxo_testkit::script::{property, scripts_for};
use rxo_wire::checksum::Summer;
use rxo_wire::segmentation::{Checksums, Stated, segment_stated};
use rxo_wire::{parse, parse_ip};

const MOST_EVENTS: usize = 150;

/// Segments the GSO frame `bytes` with `rxo-wire`.
fn frames(
    bytes: &[u8],
    (link, shape): (LinkKind, &Segment),
    size: usize,
    fixed: FixedIds,
) -> Vec<Vec<u8>> {
    let parsed = link.read(bytes, parse, parse_ip);
    let parsed = parsed.expect("an aggregate has headers");
    let size = u16::try_from(size).ok().and_then(NonZeroU16::new).expect("a segment's size");
    let checksums = Checksums::Complete(Summer::detect());
    let stated = Stated {
        protocol: parsed.transport.protocol().filter(|_| shape.outer.is_none()).unwrap_or(6),
        is_v6: Some(shape.v6),
        transport: Some(shape.transport_at),
    };
    let segments = segment_stated(bytes, &parsed, stated, size, checksums);
    let segments = segments.expect("an aggregate is a GSO frame");
    let segments = if fixed.own { segments.with_fixed_id() } else { segments };
    let mut segments = if fixed.outer { segments.with_fixed_outer_id() } else { segments };
    let mut buffer = vec![0; segments.header_bytes() + usize::from(size.get())];
    let mut frames = Vec::with_capacity(segments.remaining());
    while let Some(length) = segments.next_into(&mut buffer).expect("room for a segment") {
        frames.push(buffer[..length].to_vec());
    }
    frames
}

proptest! {
    #![proptest_config(property(200))]

    #[test]
    fn a_linux_gro_aggregate_is_segmented_into_its_frames(
        script in scripts_for("linux-gro", MOST_EVENTS),
    ) {
        let observed = harness::run(&script);
        aggregates_come_apart_by(&script, &observed, |bytes, shape, size, fixed| {
            frames(bytes, (script.setup.link, shape), size, fixed)
        });
    }
}
