//! Checks that nothing exceeds the limits of the policy.

use std::collections::BTreeSet;

use super::Observed;
use crate::naive::Reading;
use crate::oracle::MOST_DATAGRAMS;
use crate::{Script, Step};

/// Checks that aggregates have no more segments and bytes, and the engine no more flows, than the
/// policy allows.
///
/// # Panics
/// If a limit is exceeded.
pub fn limits_are_kept(script: &Script, observed: &Observed) {
    let rules = script.setup.rules();
    for shown in observed.deliveries() {
        let Some(merged) = &shown.merged else { continue };
        let (network_at, most) = match script.reading(shown.frames[0]) {
            Reading::Segment(segment) => {
                let outer = segment.outer.as_ref().map(|outer| outer.segment.network_at);
                (outer.unwrap_or(segment.network_at), rules.max_segments)
            }
            Reading::Datagram(segment) => {
                (segment.network_at, rules.max_segments.min(MOST_DATAGRAMS))
            }
            other => panic!("frame {} was merged but is {other:?}", shown.frames[0]),
        };
        let packet_bytes = merged.bytes.len() - network_at;
        assert!(merged.segment_count <= most, "{} segments", merged.segment_count);
        assert!(packet_bytes <= rules.max_bytes, "a packet of {packet_bytes} bytes");
        assert!(merged.payload_bytes <= rules.max_payload, "{} bytes", merged.payload_bytes);
    }
    flows_are_limited(script, observed, rules.flows);
}

/// Checks that after every step the held frames belong to at most `most` flows.
fn flows_are_limited(script: &Script, observed: &Observed, most: usize) {
    let mut waiting = Vec::new();
    let mut held = BTreeSet::new();
    for (step, shown) in script.steps.iter().zip(&observed.steps) {
        match step {
            Step::Frame(index) => waiting.push(*index),
            Step::Push | Step::Poll | Step::Flush => held.extend(waiting.drain(..)),
            Step::EndOfPoll | Step::Advance(_) | Step::Load(_) => {}
        }
        for index in shown.iter().flat_map(|shown| &shown.frames) {
            held.remove(index);
        }
        let flows: BTreeSet<_> = held.iter().map(|index| flow(script, *index)).collect();
        assert!(flows.len() <= most, "after {step:?} {} flows are held", flows.len());
    }
}

fn flow(script: &Script, index: usize) -> impl Ord + use<> {
    match script.reading(index) {
        Reading::Segment(segment) | Reading::Datagram(segment) => (segment.ends, segment.ports),
        other => panic!("frame {index} is held but is {other:?}"),
    }
}
