//! Counters of the engine: frames, deliveries, and the reasons for each bypass and flush.

use rxo_frame::Count;

use crate::{BypassReason, FlushReason, Histogram};

rxo_frame::counters! {
    /// Counters of an engine since its creation. Every frame is counted once: as bypassed, as a single, or in an
    /// aggregate. Held pure ACKs are counted by the counters for ACKs instead.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Counters {
        /// Number of frames received.
        pub frames: u64,
        /// Number of deliveries: single frames and aggregates together.
        pub deliveries: u64,
        /// Number of frames that were candidates but were delivered alone.
        pub singles: u64,
        /// Number of aggregates of two segments or more.
        pub aggregates: u64,
        /// Number of segments in all aggregates of two segments or more.
        pub aggregated_segments: u64,
        /// Number of pure ACKs that were held but delivered alone.
        pub ack_singles: u64,
        /// Number of deliveries of two pure ACKs or more.
        pub ack_aggregates: u64,
        /// Number of pure ACKs in all deliveries of two pure ACKs or more.
        pub aggregated_acks: u64,
        /// Number of UDP datagrams that were coalesced or could have been. These datagrams are also counted in
        /// `singles` or `aggregated_segments`. Datagrams that bypass are not counted here.
        pub datagrams: u64,
        /// Number of deliveries of UDP datagrams that were coalesced or could have been, each counted when
        /// its first datagram is received.
        pub datagram_deliveries: u64,
        /// Number of TCP segments inside tunnels that were coalesced or could have been. These segments are
        /// also counted in `singles` or `aggregated_segments`. Segments that bypass are not counted here.
        pub tunnelled: u64,
        /// Number of deliveries of TCP segments inside tunnels that were coalesced or could have been, each
        /// counted when its first segment is received.
        pub tunnelled_deliveries: u64,
        bypassed: Bypassed,
        flushed: Flushed,
        /// The number of segments in each delivery of candidates, single segments included.
        pub segments_per_aggregate: Histogram,
        /// The number of pure ACKs in each delivery of held ACKs, single ACKs included.
        pub acks_per_delivery: Histogram,
        /// The hold time of each aggregate or single candidate: from the arrival of its first segment to its
        /// flush, in nanoseconds.
        pub hold_ns: Histogram,
    }
}

type Bypassed = PerReason<{ BypassReason::COUNT }>;
type Flushed = PerReason<{ FlushReason::COUNT }>;

/// A count for each reason. A newtype, because arrays of more than 32 elements have no `Default`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PerReason<const N: usize>([u64; N]);

impl<const N: usize> Default for PerReason<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Count for PerReason<N> {
    fn zip(&self, other: &Self, apply: fn(u64, u64) -> u64) -> Self {
        Self(self.0.zip(&other.0, apply))
    }

    fn single(&self) -> Option<u64> {
        None
    }
}

impl Counters {
    /// Returns the number of frames that were delivered untouched for this reason.
    #[must_use]
    pub const fn bypassed(&self, reason: BypassReason) -> u64 {
        self.bypassed.0[reason as usize]
    }

    /// Returns the number of flushes for this reason.
    #[must_use]
    pub const fn flushed(&self, reason: FlushReason) -> u64 {
        self.flushed.0[reason as usize]
    }

    /// Returns the number of frames that bypassed, for all reasons together.
    #[must_use]
    pub fn bypassed_total(&self) -> u64 {
        self.bypassed.0.iter().sum()
    }

    /// Returns the number of flushes, for all reasons together.
    #[must_use]
    pub fn flushed_total(&self) -> u64 {
        self.flushed.0.iter().sum()
    }

    /// Returns the average number of frames per delivery; 0 before the first delivery.
    #[must_use]
    pub fn frames_per_delivery(&self) -> f64 {
        if self.deliveries == 0 { 0.0 } else { self.frames as f64 / self.deliveries as f64 }
    }

    /// Returns the number of frames in all deliveries: bypassed, single and aggregated. This number plus the
    /// number of frames that the engine holds equals [`Counters::frames`].
    #[must_use]
    pub fn delivered_frames(&self) -> u64 {
        let candidates = self.singles + self.aggregated_segments;
        self.bypassed_total() + candidates + self.ack_singles + self.aggregated_acks
    }

    /// Returns the number of pure ACKs received: the ACKs that were held, and the ACKs that bypassed for a reason
    /// that only pure ACKs can have.
    #[must_use]
    pub fn pure_acks(&self) -> u64 {
        self.bypassed_acks() + self.ack_singles + self.aggregated_acks
    }

    /// Returns the number of deliveries of pure ACKs.
    #[must_use]
    pub fn ack_deliveries(&self) -> u64 {
        self.bypassed_acks() + self.ack_singles + self.ack_aggregates
    }

    fn bypassed_acks(&self) -> u64 {
        PURE_ACKS.iter().map(|reason| self.bypassed(*reason)).sum()
    }

    #[inline]
    pub(crate) fn bypass(&mut self, reason: BypassReason) {
        self.bypassed.0[reason as usize] += 1;
        self.deliveries += 1;
    }

    #[inline]
    pub(crate) fn flush(&mut self, reason: FlushReason, segments: u32, held_ns: u64) {
        let mut tally = Tally::default();
        self.flush_one(&mut tally, segments, held_ns);
        self.add(reason, tally);
    }

    /// Counts a flush of pure ACKs. Not inlined, so that the flush of data stays small.
    #[inline(never)]
    pub(crate) fn flush_acks(&mut self, reason: FlushReason, acks: u32, held_ns: u64) {
        self.hold_ns.record(held_ns);
        self.acks_per_delivery.record(acks.into());
        self.flushed.0[reason as usize] += 1;
        self.deliveries += 1;
        if acks == 1 {
            self.ack_singles += 1;
        } else {
            self.ack_aggregates += 1;
            self.aggregated_acks += u64::from(acks);
        }
    }

    /// Counts a flush in `tally`, which collects several flushes for one reason. [`Counters::add`] then adds the
    /// totals of `tally` and the remaining hold times to the counters of that reason.
    #[inline]
    pub(crate) fn flush_one(&mut self, tally: &mut Tally, segments: u32, held_ns: u64) {
        // Equal hold times are collected and recorded at once.
        if held_ns != tally.held_ns {
            self.hold_ns.record_many(tally.held_ns, tally.flushes - tally.recorded);
            (tally.held_ns, tally.recorded) = (held_ns, tally.flushes);
        }
        tally.flushes += 1;
        if segments == 1 {
            tally.singles += 1;
        } else {
            tally.segments += u64::from(segments);
            self.segments_per_aggregate.record(u64::from(segments));
        }
    }

    /// Adds the totals of several flushes for `reason`, which [`Counters::flush_one`] collected in `tally`.
    #[inline]
    pub(crate) fn add(&mut self, reason: FlushReason, tally: Tally) {
        self.hold_ns.record_many(tally.held_ns, tally.flushes - tally.recorded);
        self.flushed.0[reason as usize] += tally.flushes;
        self.deliveries += tally.flushes;
        self.singles += tally.singles;
        self.aggregates += tally.flushes - tally.singles;
        self.aggregated_segments += tally.segments;
        self.segments_per_aggregate.record_many(1, tally.singles);
    }
}

/// The bypass reasons that only pure ACKs can have.
const PURE_ACKS: [BypassReason; 5] = [
    BypassReason::PureAck,
    BypassReason::FirstAck,
    BypassReason::DuplicateAck,
    BypassReason::OldAck,
    BypassReason::Sack,
];

/// Running totals of several flushes for one reason, small enough to stay in registers.
#[derive(Default)]
pub(crate) struct Tally {
    /// The number of flushes so far.
    flushes: u64,
    /// The number of flushes that each delivered a single segment.
    singles: u64,
    /// The number of segments in aggregates of two or more.
    segments: u64,
    /// Hold time of the last flush, in nanoseconds. Usually equal for all flushes: the frames of one poll
    /// usually have one arrival time.
    held_ns: u64,
    /// The number of flushes whose hold time is already in the histogram. All other flushes of this tally had
    /// the hold time `held_ns`.
    recorded: u64,
}
