//! The settings of a multicast group of receivers.

use rxo_frame::Duration;

use crate::GroupSeed;

/// The settings of a multicast group of receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// The values that all connections of the group share.
    pub seed: GroupSeed,
    /// The size of the buffer for data that not all receivers have acknowledged, in bytes; less than 2³⁰.
    pub buffer_bytes: u32,
    /// The payload size of a full segment in bytes, unless a receiver accepts only smaller segments.
    pub largest_segment_bytes: u32,
    /// The largest payload of a GSO frame, in bytes. If it is less than two segments, every segment is sent
    /// alone.
    pub large_send_bytes: u32,
    /// Maximum number of receivers at a time.
    pub most_receivers: usize,
    /// The treatment of a receiver that delays the others.
    pub slow: Slow,
    /// The treatment of a receiver that joins after the first byte.
    pub late: Late,
    /// The limit for the time that all late receivers together may add to the multicast. The time counts while
    /// only late receivers delay the others, and once only late receivers are left. When the limit is reached,
    /// all late receivers are ejected and further ones are refused. `None` means no limit.
    pub late_time: Option<Duration>,
    /// The repair method for lost data.
    pub repairs: Repairs,
    /// The congestion control of the group.
    pub control: Control,
}

/// The choice of congestion control for a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// The group has one congestion window, led by the receiver with the worst path: only the losses of this
    /// receiver lower the window (pgmcc, Rizzo 2000; RFC 4654, section 2). A silent receiver does not delay the
    /// others: it catches up by its own connection when it answers again.
    #[default]
    Leader,
    /// The smallest congestion window of all receivers limits the group (Chan and Cheriton 2013, section 4).
    /// With this choice, the rate falls as receivers are added, because every loss of every receiver lowers it.
    Paper,
}

/// The treatment of a receiver that delays the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slow {
    /// All receivers wait until the slow receiver's connection fails by itself: the connection of a receiver
    /// that does not answer fails after the user timeout. A receiver that keeps its window closed and answers
    /// probes may delay the group without end (RFC 9293, section 3.8.6.1).
    Wait,
    /// A receiver is ejected if it accepts less than one segment in this time while data waits to be sent to
    /// it.
    Eject(Duration),
    /// A receiver is ejected as under [`Slow::Eject`]. In addition, the slowest receiver is ejected if data
    /// waits for receivers and the position that all receivers have reached advances by less than `bytes` bytes
    /// in `time`.
    EjectBelow {
        /// The length of the interval, at least a few round trips.
        time: Duration,
        /// The number of bytes by which the position that all receivers have reached must advance in `time`.
        bytes: u64,
    },
}

/// The treatment of a receiver that joins after the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// The late receiver is refused.
    Refuse,
    /// The late receiver's own connection sends the data from the beginning, until the receiver reaches the
    /// position of the group.
    CatchUp,
    /// The late receiver's stream begins at the position of the group at the time when it asks to join.
    FromNow,
}

/// A repair method for lost data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repairs {
    /// Each receiver's own connection retransmits lost data.
    Each,
    /// Data that at least `least` receivers miss within a round trip is retransmitted to the group; other
    /// data is retransmitted as under `Each`.
    Group {
        /// The number of receivers that must miss the data before it is repaired to the group; at least 2.
        least: usize,
    },
    /// Lost data is repaired by parity packets to the group: for each block of the stream, as many as the
    /// worst receiver lacks segments. The owner computes the packets
    /// ([`Group::parity`](crate::Group::parity)), and each receiver restores its segments by a
    /// [`ParityCollector`](crate::ParityCollector). A receiver without a `ParityCollector` gets its segments as
    /// under `Group { least: 2 }`, some round trips later.
    Parity,
}

impl Repairs {
    /// Returns the method by which a stream to this number of receivers takes the least time: `Parity` for 32 or
    /// more, if all of them have a [`ParityCollector`](crate::ParityCollector), otherwise `Group { least: 2 }`.
    ///
    /// A parity packet repairs a different loss at each receiver, but waits for the end of its block.
    #[must_use]
    pub const fn best_for(receivers: usize) -> Self {
        // On virtual time, where receivers answer at once, parity takes no longer for 8 receivers. 20 processes that
        // share two processors answer milliseconds later, and got segments sooner than parity packets.
        if receivers < 32 { Self::Group { least: 2 } } else { Self::Parity }
    }
}
