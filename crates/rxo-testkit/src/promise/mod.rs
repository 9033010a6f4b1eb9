//! The promises, as checks of what an engine was seen to do with a script.
//!
//! [`Observed`] is what a run showed, in no engine's types: whoever can fill it in can be judged.
//! Contract: a check returns when its promise held and panics, naming frame and step, when not.

mod acks;
mod content;
mod limits;
mod order;

use std::collections::BTreeMap;

use rxo_frame::{ChecksumStatus, Duration, Gso, Instant, VlanTag};

pub use acks::{AckSaid, ShownAcks, acks_are_right};
pub use content::{aggregates_are_right, aggregates_come_apart_again};
pub use limits::limits_are_kept;
pub use order::{every_frame_once, holds_are_bounded, matches_the_oracle, order_is_kept};

use crate::Script;
use crate::oracle::Why;

/// What a run of a script showed: a list of deliveries for each step, and one for the last flush.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Deliveries by step.
    pub steps: Vec<Vec<Shown>>,
    /// How often each reason was counted, by step.
    pub reasons: Vec<BTreeMap<Why, u64>>,
}

/// One delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The frames in it, by number in the script.
    pub frames: Vec<usize>,
    /// What it said of itself, when it was an aggregate of data.
    pub merged: Option<Merged>,
    /// What it said of itself, when it was several pure ACKs.
    pub acks: Option<ShownAcks>,
    /// Why it was delivered when it was, as far as the delivery itself says.
    pub reason: Option<&'static str>,
    /// When it was delivered, on the script's clock.
    pub at: Instant,
}

/// What an aggregate said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// All pieces that a sink would gather, one after the other.
    pub bytes: Vec<u8>,
    /// How many of these are headers.
    pub header_bytes: usize,
    /// What its accessors said.
    pub segment_count: usize,
    /// See `segment_count`.
    pub payload_bytes: usize,
    /// See `segment_count`.
    pub byte_len: usize,
    /// What a sink is told of the checksum.
    pub status: ChecksumStatus,
    /// What a sink is told of segmentation.
    pub gso: Option<Gso>,
    /// The tag that a sink must put back.
    pub vlan: Option<VlanTag>,
    /// Whether the IPv4 ID stays the same in all segments; `None` for IPv6.
    pub fixed_id: Option<bool>,
    /// What it remembers of each segment.
    pub records: Vec<Record>,
    /// The same header with each form of checksum: seed, complete, untouched.
    pub headers: [Vec<u8>; 3],
    /// When its first and last segment arrived.
    pub arrivals: (Instant, Instant),
}

/// What an aggregate remembers of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// SEG.SEQ.
    pub seq: u32,
    /// SEG.ACK.
    pub ack: u32,
    /// SEG.WND.
    pub window: u16,
    /// TSval and TSecr, when the timestamp is in its usual place.
    pub timestamp: Option<(u32, u32)>,
    /// Payload, in bytes.
    pub payload_bytes: usize,
    /// When it arrived.
    pub arrived_at: Instant,
}

impl Observed {
    /// All deliveries, in order.
    pub fn deliveries(&self) -> impl Iterator<Item = &Shown> {
        self.steps.iter().flatten()
    }

    /// All frame numbers, in the order of delivery.
    #[must_use]
    pub fn frame_order(&self) -> Vec<usize> {
        self.deliveries().flat_map(|shown| shown.frames.iter().copied()).collect()
    }
}

/// Everything that holds for any set-up, however little memory it has.
pub fn check_promises(script: &Script, observed: &Observed) {
    every_frame_once(script, observed);
    order_is_kept(script, observed);
    aggregates_are_right(script, observed);
    acks_are_right(script, observed);
    aggregates_come_apart_again(script, observed);
    holds_are_bounded(script, observed);
    limits_are_kept(script, observed);
}

/// How long after it was pushed a segment may still be delivered.
pub(crate) fn time_limit(script: &Script) -> Duration {
    script.setup.rules().time_limit().unwrap_or(Duration::ZERO)
}
