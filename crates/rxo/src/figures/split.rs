//! Results of `--ack-split`, as numbers and as text.

use std::collections::BTreeMap;

use rxo_ack::{PassReason, SplitCounters};
use rxo_console::numbers::grouped;
use serde::Serialize;

use super::occurred;

/// The figures of ACK splitting in an interval, or in a whole run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Split {
    /// The number of pure ACKs that arrived from the host.
    pub acks_in: u64,
    /// The number of pure ACKs that were sent to the nic, including the inserted ones.
    pub acks_out: u64,
    /// The number of stretch ACKs from the host: ACKs that cover more segments than one ACK should.
    pub stretch_acks: u64,
    /// The number of stretch ACKs that were split; each became an ACK template.
    pub templates: u64,
    /// The number of ACKs that were sent for ACK templates: the host's stretch ACKs and those inserted for them.
    pub expanded: u64,
    /// The number of data segments delivered to the host whose boundaries the splitter has recorded.
    pub segments: u64,
    /// The number of flows that were evicted from the splitter's table because it was full.
    pub evicted: u64,
    /// The number of frames from the host that were not split, by reason; reasons that did not occur are left out.
    pub passed: BTreeMap<&'static str, u64>,
}

impl Split {
    pub(super) fn new(counters: &SplitCounters) -> Self {
        let passed = PassReason::ALL.iter().map(|&why| (why.name(), counters.passed(why)));
        Self {
            acks_in: counters.acks,
            acks_out: counters.acks_out(),
            stretch_acks: counters.stretch_acks,
            templates: counters.templates,
            expanded: counters.expanded(),
            segments: counters.segments,
            evicted: counters.evicted,
            passed: occurred(passed),
        }
    }

    /// Returns the part of an interval's line that describes ACK splitting.
    pub(super) fn line(&self) -> String {
        let Self { acks_in, acks_out, templates, .. } = self;
        let (acks_in, acks_out) = (grouped(*acks_in), grouped(*acks_out));
        format!("acks back {acks_in} -> {acks_out} ({} split)", grouped(*templates))
    }

    /// Returns the line about ACK splitting in the totals. `passed` lists the reasons why frames were not split.
    pub(super) fn totals(&self, passed: String) -> String {
        let Self { acks_in, acks_out, stretch_acks, templates, expanded, segments, .. } = self;
        format!(
            "{} ACKs in, {} out; {} stretch ACKs, {} split into {}; {} segments delivered; \
             passed {passed}",
            grouped(*acks_in),
            grouped(*acks_out),
            grouped(*stretch_acks),
            grouped(*templates),
            grouped(*expanded),
            grouped(*segments),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(scale: u64) -> SplitCounters {
        let mut counters = SplitCounters::default();
        (counters.segments, counters.frames, counters.acks) = (16 * scale, 3 * scale, 2 * scale);
        (counters.stretch_acks, counters.templates, counters.inserted) = (scale, scale, 7 * scale);
        counters
    }

    #[test]
    fn the_line_says_the_effect() {
        let split = Split::new(&counters(2_000));
        assert_eq!((split.acks_in, split.acks_out), (4_000, 18_000));
        assert_eq!(split.line(), "acks back 4,000 -> 18,000 (2,000 split)");
        assert_eq!(
            split.totals("none".to_owned()),
            "4,000 ACKs in, 18,000 out; 2,000 stretch ACKs, 2,000 split into 16,000; 32,000 \
             segments delivered; passed none"
        );
    }

    #[test]
    fn inserted_acks_are_expanded_ones() {
        let split = Split::new(&counters(1));
        assert_eq!((split.templates, split.expanded, split.segments), (1, 8, 16));
        assert!(split.passed.is_empty());
    }
}
