//! The settings of a group.

use rxo_frame::Duration;

use crate::GroupSeed;

/// Settings of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// What all connections have in common.
    pub seed: GroupSeed,
    /// The most text that not all receivers have, in bytes; less than 2³⁰.
    pub buffer_bytes: u32,
    /// The payload of a full segment if no receiver asks for less, in bytes.
    pub largest_segment_bytes: u32,
    /// The payload of the largest GSO frame, in bytes. Below two segments, each segment is sent alone.
    pub large_send_bytes: u32,
    /// The most receivers at a time.
    pub most_receivers: usize,
    /// What happens to a receiver that holds the others up.
    pub slow: Slow,
    /// What happens to a receiver that comes after the first byte.
    pub late: Late,
    /// The most time that all receivers together that come after the first byte add: while the others wait for them alone,
    /// and when no others are left. Then they are ejected, and whoever comes later is refused. `None`: without end.
    pub late_time: Option<Duration>,
    /// How lost text is repaired.
    pub repairs: Repairs,
}

/// What happens to a receiver that holds the others up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slow {
    /// All wait, until its connection fails by itself: one that says nothing does, after the user timeout. A receiver that
    /// keeps its window closed and answers probes may do so for ever (RFC 9293, section 3.8.6.1).
    Wait,
    /// It is ejected if it takes less than a segment in this time while text waits for it.
    Eject(Duration),
    /// As `Eject`. And if all get less than `bytes` in this time, because text waits for receivers, the slowest is ejected.
    EjectBelow {
        /// How long. At least a few round trips.
        time: Duration,
        /// How many bytes.
        bytes: u64,
    },
}

/// What happens to a receiver that comes after the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// It is refused.
    Refuse,
    /// Its own connection sends it the text from the beginning, until it is where the group is.
    CatchUp,
    /// Its stream begins where the group is when it asks to join.
    FromNow,
}

/// How lost text is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repairs {
    /// By each receiver's own connection.
    Each,
    /// To the group what is found missing at so many receivers within a round trip, and the rest as with `Each`.
    Group {
        /// How many receivers. At least 2.
        least: usize,
    },
}
