//! The engine's promises, as checks of a run.
//!
//! [`Observed`] records a run without using any type of an engine, so every engine can be checked. Contract:
//! a check returns if its promise held; otherwise it panics and names frame and step.

mod acks;
mod content;
mod limits;
mod order;

use std::collections::BTreeMap;

use rxo_frame::{ChecksumStatus, Duration, Gso, Instant, VlanTag};

pub use acks::{AckSaid, ShownAcks, acks_are_right};
pub use content::{aggregates_are_right, aggregates_come_apart_again, aggregates_come_apart_by};
pub use limits::limits_are_kept;
pub use order::{every_frame_once, holds_are_bounded, matches_the_oracle, order_is_kept};

use crate::Script;
use crate::oracle::Why;

/// The observed deliveries of a script's run: those of each step, and of the final flush.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Deliveries by step.
    pub steps: Vec<Vec<Shown>>,
    /// The count of each reason, by step.
    pub reasons: Vec<BTreeMap<Why, u64>>,
}

/// A delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Numbers of the delivery's frames in the script.
    pub frames: Vec<usize>,
    /// Content of the delivery, if it is an aggregate of data.
    pub merged: Option<Merged>,
    /// Content of the delivery, if it is several pure ACKs.
    pub acks: Option<ShownAcks>,
    /// Reason for the flush, if the delivery reports one.
    pub reason: Option<&'static str>,
    /// Time of the delivery, on the script's clock.
    pub at: Instant,
}

/// The observed content of an aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// All pieces that a sink would gather, concatenated.
    pub bytes: Vec<u8>,
    /// Number of header bytes in `bytes`.
    pub header_bytes: usize,
    /// Value returned by the accessor of the same name.
    pub segment_count: usize,
    /// Value returned by the accessor of the same name, in bytes.
    pub payload_bytes: usize,
    /// Value returned by the accessor of the same name, in bytes.
    pub byte_len: usize,
    /// Checksum status that a sink receives.
    pub status: ChecksumStatus,
    /// Segmentation that a sink is asked for.
    pub gso: Option<Gso>,
    /// VLAN tag that a sink must insert.
    pub vlan: Option<VlanTag>,
    /// `true` if the IPv4 ID is equal in all segments; `None` for IPv6.
    pub fixed_id: Option<bool>,
    /// `true` if the outer IPv4 ID is equal in all segments; `None` for IPv6 and outside tunnels.
    pub fixed_outer_id: Option<bool>,
    /// The aggregate's record of each segment.
    pub records: Vec<Record>,
    /// The header with each form of checksum: seed, complete, untouched.
    pub headers: [Vec<u8>; 3],
    /// Arrival times of the first and the last segment.
    pub arrivals: (Instant, Instant),
}

/// The record of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// SEG.SEQ.
    pub seq: u32,
    /// SEG.ACK.
    pub ack: u32,
    /// SEG.WND.
    pub window: u16,
    /// TSval and TSecr, if the timestamp is at its usual offset.
    pub timestamp: Option<(u32, u32)>,
    /// Payload length, in bytes.
    pub payload_bytes: usize,
    /// Arrival time of the segment.
    pub arrived_at: Instant,
}

impl Observed {
    /// Returns all deliveries, in order.
    pub fn deliveries(&self) -> impl Iterator<Item = &Shown> {
        self.steps.iter().flatten()
    }

    /// Returns the numbers of all frames, in the order of delivery.
    #[must_use]
    pub fn frame_order(&self) -> Vec<usize> {
        self.deliveries().flat_map(|shown| shown.frames.iter().copied()).collect()
    }
}

/// Checks every promise that holds for any configuration, however little memory it has.
pub fn check_promises(script: &Script, observed: &Observed) {
    every_frame_once(script, observed);
    order_is_kept(script, observed);
    aggregates_are_right(script, observed);
    acks_are_right(script, observed);
    aggregates_come_apart_again(script, observed);
    holds_are_bounded(script, observed);
    limits_are_kept(script, observed);
}

/// Returns the longest time for which a segment may be held after it was pushed.
pub(crate) fn time_limit(script: &Script) -> Duration {
    script.setup.rules().time_limit().unwrap_or(Duration::ZERO)
}
