//! Compares two captures, flow by flow.
//!
//! An aggregate counts as equal to the segments that it consists of. The comparison covers the bytes of the
//! stream and their order, but not the division of the stream into packets. For each direction of a connection,
//! on each interface:
//!
//! * **bytes and order**: the same (SEQ, bytes) in the same order, including retransmitted and
//!   reordered data;
//! * **marks**: the same traffic class with its ECN bits, and the same flags except PSH and FIN,
//!   for every byte;
//! * **acknowledgements**: pure ACKs one by one; and where packets of both captures end at the same
//!   byte, the same ACK number, window and options;
//! * **PSH and FIN**: the same between two such positions;
//! * **segments inside an aggregate**: if `rxo coalesce` wrote a note, the note must match its packet, and each
//!   segment that it restores must equal the segment of the other capture. Without a note, the header has only
//!   the fields of the last segment, and the other segments count as forgotten.
//!
//! UDP is compared datagram by datagram. A packet with a note is compared as the datagrams that the note
//! restores. A packet without a note that is longer than the other capture's datagram is compared as several
//! datagrams of that length, as segmentation would divide it. These datagrams count as forgotten. If the ends
//! of datagrams differ in two packets without notes, both may be several datagrams of a smaller length: such a
//! flow is listed as undecided. All other packets (fragments, unreadable packets) are compared packet by
//! packet. Times, link-layer headers, TTL, IP IDs and checksums are not compared, because they may differ
//! between two captures of one conversation.
//!
//! # Contract
//! Both captures are read once, side by side. A packet that was read from only one capture waits for its
//! counterpart. [`Limits`] bounds the waiting packets, and documents the behaviour at each limit. The caller
//! does all input and output.

mod difference;
mod facts;
mod flow;
mod flows;

#[cfg(test)]
mod tests;

use rxo_capture::{LinkType, Record};

pub use self::difference::{ComparisonResult, Difference, Kind};
use self::facts::ComparedPacket;
use self::flows::Flows;

/// One of the two captures of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first capture of the comparison.
    A,
    /// The second capture of the comparison.
    B,
}

impl Side {
    /// Returns the other one of the two captures.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// The limits of a comparison's memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of bytes that wait for their counterpart, in all flows together. At this limit, the oldest
    /// waiting packet counts as missing in the other capture.
    pub waiting_bytes: usize,
    /// The maximum number of flows. At this limit, flows without waiting packets are forgotten. No difference
    /// is missed, but the offsets of later differences in such a flow count from this point.
    pub flows: usize,
    /// The number of differing flows after which the comparison stops.
    pub differences: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { waiting_bytes: 64 << 20, flows: 1 << 20, differences: 100 }
    }
}

/// The state of a comparison of two captures.
#[derive(Debug)]
pub struct Comparison {
    flows: Flows,
    packets: [u64; 2],
    ended: [Option<End>; 2],
}

/// The result of reading a capture: to its end, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The capture was read completely.
    Whole,
    /// The rest of the capture could not be read.
    Cut,
}

impl Comparison {
    /// Starts a comparison of two captures, within the limits `limits`.
    ///
    /// # Examples
    /// ```
    /// use rxo_capture::{LinkType, Record};
    /// use rxo_trace::verify::{Comparison, Limits, Side};
    ///
    /// let record = Record { original_bytes: 60, bytes: vec![0x45; 60].into(), ..Record::default() };
    /// let mut comparison = Comparison::new(Limits::default());
    /// while let Some(side) = comparison.next_side() {
    ///     // Each capture has one packet.
    ///     comparison.push(side, &record, LinkType::RAW);
    ///     comparison.end(side);
    /// }
    /// assert!(comparison.finish().differences.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { flows: Flows::new(limits), packets: [0; 2], ended: [None; 2] }
    }

    /// Returns the capture to read next, which is the one with fewer waiting bytes. `None` if both captures
    /// have ended, or enough differences were found.
    #[must_use]
    pub fn next_side(&self) -> Option<Side> {
        if self.flows.has_enough() {
            return None;
        }
        let is_a_ahead = self.flows.waiting_bytes(Side::A) > self.flows.waiting_bytes(Side::B);
        match self.ended {
            [None, None] if is_a_ahead => Some(Side::B),
            [None, _] => Some(Side::A),
            [_, None] => Some(Side::B),
            [Some(_), Some(_)] => None,
        }
    }

    /// Compares the next record of the capture `side`. `link` is the link type of the record's interface.
    pub fn push(&mut self, side: Side, record: &Record, link: LinkType) {
        let number = &mut self.packets[side.index()];
        *number += 1;
        // After a truncated capture nothing can wait: the missing part may contain the counterpart.
        let may_wait = self.ended[side.other().index()] != Some(End::Cut);
        self.flows.push((side, may_wait), *number, ComparedPacket::read(record, link));
    }

    /// Records that the capture `side` has ended and was read completely.
    pub fn end(&mut self, side: Side) {
        self.ended[side.index()] = Some(End::Whole);
    }

    /// Records that the rest of the capture `side` could not be read. Packets that the unread rest may contain
    /// do not count as missing in this capture. Packets that were read from this capture still count as missing
    /// in the other one.
    pub fn cut(&mut self, side: Side) {
        self.ended[side.index()] = Some(End::Cut);
        self.flows.forget_waiting(side.other());
    }

    /// Returns the result of the comparison. Packets that still wait count as missing in the other capture if
    /// the other capture was read completely.
    #[must_use]
    pub fn finish(mut self) -> ComparisonResult {
        for side in [Side::A, Side::B] {
            if self.ended[side.other().index()] != Some(End::Whole) {
                self.flows.forget_waiting(side);
            }
        }
        let [packets_a, packets_b] = self.packets;
        self.flows.finish(packets_a, packets_b)
    }
}
