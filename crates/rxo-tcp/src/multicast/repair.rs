//! Common repairs: data that several receivers miss is retransmitted once, to the group.
//!
//! Each connection detects the losses of its receiver, and counts a segment as retransmitted when it returns
//! the segment. The owner defers those segments to the end of its poll ([`Group::defer`]); then a segment that
//! several connections request is sent once. Connections detect a loss at different times. Therefore requests
//! within one round trip count together, and further requests are dropped while the segment is on its way to
//! the group. If the repair is lost, each connection detects that loss. While several receivers request most
//! repaired segments, the first request already causes a repair to the group ([`Repaired::forget_before`]).
//! After the FIN has been sent, a segment is sent to the group only once, then to single receivers. A receiver
//! that has not answered a timeout gets its repairs by unicast, too: its ACKs may be lost, and
//! receivers rarely answer duplicates that were sent to the group.

use alloc::collections::BTreeMap;

use rxo_frame::Instant;

use super::{Group, MemberId, Repairs};
use crate::Transmit;
use crate::options::OptionBytes;

/// A segment that a connection wants to retransmit.
#[derive(Clone, Debug)]
pub(super) struct RepairRequest {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) id: MemberId,
    /// `true` if a retransmission timeout has expired and no new data was acknowledged since.
    pub(super) has_timed_out: bool,
    /// `true` until the data that was outstanding at the last timeout is acknowledged.
    pub(super) is_after_timeout: bool,
    /// The smoothed round-trip time of the connection, in nanoseconds.
    pub(super) round_trip_ns: u64,
    head: Head,
}

/// The header fields of a retransmitted segment that differ between the connections of a group.
#[derive(Clone, Debug)]
struct Head {
    ack: rxo_wire::SeqNumber,
    window: u16,
    options: OptionBytes,
}

/// The last repair of each segment that not all receivers have acknowledged, by the position of its first byte.
#[derive(Debug, Default)]
pub(super) struct Repaired {
    last: BTreeMap<u64, Last>,
    /// The share of repaired segments that at least the configured number of receivers have requested: a moving
    /// average in parts of [`ALL`].
    shared: u32,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    end: u64,
    at: Instant,
    way: Way,
    /// The number of requests for the segment by all receivers.
    asked: usize,
    /// `true` if any repair of the segment was sent to the group.
    was_to_group: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToGroup,
    /// The repair is sent by unicast; this number of receivers have requested it.
    Alone(usize),
}

impl Repaired {
    /// Decides whether to send the data of the requests in `same` to the group or to single receivers. All
    /// requests in `same` are for the same data. `None` if the data is already on its way to the group.
    /// `is_over` means that the FIN has been sent. Then the segment is sent to the group at most once: a
    /// receiver that has acknowledged everything may have left the group, and its ACK may be lost.
    fn way(
        &mut self,
        same: &[RepairRequest],
        least: usize,
        is_over: bool,
        now: Instant,
    ) -> Option<Way> {
        let (start, end) = (same[0].start, same[0].end);
        let round_trip_ns = same.iter().map(|it| it.round_trip_ns).max().unwrap_or_default();
        let is_shared = self.shared > ALL / 2;
        let mut last = self.last.get_mut(&start).filter(|last| last.end == end);
        if let Some(last) = &mut last {
            last.asked += same.len();
        }
        let asked = last.as_ref().map_or(same.len(), |last| last.asked);
        let was_to_group = last.as_ref().is_some_and(|last| last.was_to_group);
        let is_recent = |last: &&mut Last| now < last.at.plus_nanos(round_trip_ns);
        let before = match last.filter(is_recent).map(|last| last.way) {
            Some(Way::ToGroup) => return None,
            Some(Way::Alone(count)) => count,
            None => 0,
        };
        let count = before + same.len();
        let may_be_to_group = !(is_over && was_to_group);
        let is_to_group = may_be_to_group && (count >= least.max(2) || is_shared);
        let way = if is_to_group { Way::ToGroup } else { Way::Alone(count) };
        if self.last.len() >= MOST_REPAIRED {
            // A receiver can request any byte, so the record is bounded. A segment that is removed from the
            // record may be sent once more.
            self.last.clear();
        }
        let was_to_group = was_to_group || is_to_group;
        self.last.insert(start, Last { end, at: now, way, asked, was_to_group });
        Some(way)
    }

    /// Drops the records of the segments before `una`, which all receivers have acknowledged. If at least
    /// `least` receivers requested most of these segments and `predicts` is `true`, later segments are sent to
    /// the group at the first request.
    pub(super) fn forget_before(&mut self, una: u64, least: usize, predicts: bool) {
        while let Some(first) = self.last.first_entry().filter(|it| it.get().end <= una) {
            let is_shared = first.remove().asked >= least && predicts;
            self.shared += if is_shared { ALL / SHARE_WEIGHT } else { 0 };
            self.shared -= self.shared / SHARE_WEIGHT;
        }
    }
}

/// A segment to retransmit, or a parity packet to send.
#[derive(Clone, Debug)]
pub struct Repair {
    start: u64,
    end: u64,
    way: RepairWay,
}

#[derive(Clone, Debug)]
enum RepairWay {
    /// The segment is sent to the group.
    ToGroup,
    /// The segment is sent to this member, with these header fields.
    ToMember(MemberId, Head),
    /// The parity packet with this index is sent to the group. `segment_bytes` is the segment size of its
    /// block, in bytes.
    Parity { segment_bytes: u32, index: u8 },
}

impl Repair {
    /// Returns the only member to which the repair is sent; `None` if the repair is sent to the group.
    #[must_use]
    pub fn member(&self) -> Option<MemberId> {
        match self.way {
            RepairWay::ToMember(id, _) => Some(id),
            RepairWay::ToGroup | RepairWay::Parity { .. } => None,
        }
    }

    /// Creates a parity packet with the number `index` for the block between two positions.
    pub(super) fn parity_of((start, end): (u64, u64), segment_bytes: u32, index: u8) -> Self {
        Self { start, end, way: RepairWay::Parity { segment_bytes, index } }
    }

    /// Returns the segment size in bytes and the packet number of a parity packet; `None` for a segment.
    pub(super) fn parity(&self) -> Option<(u32, u8)> {
        match self.way {
            RepairWay::Parity { segment_bytes, index } => Some((segment_bytes, index)),
            RepairWay::ToGroup | RepairWay::ToMember(..) => None,
        }
    }

    /// Returns the stream positions of the first byte of the repair and after its last byte.
    pub(super) fn range(&self) -> (u64, u64) {
        (self.start, self.end)
    }
}

impl Group {
    /// Returns `true` if the settings of the group permit repairs that are sent to all receivers at once.
    #[must_use]
    pub const fn defers_repairs(&self) -> bool {
        matches!(self.config.repairs, Repairs::Group { .. } | Repairs::Parity)
    }

    /// Defers `transmit`, a segment of a member's connection, to [`Group::poll_repair`]. Returns `false` if
    /// the owner must send it now: it is not a retransmission, or repairs are not shared.
    pub fn defer(&mut self, id: MemberId, transmit: &Transmit<'_>) -> bool {
        let Some(Some(member)) = self.members.get(id as usize) else { return false };
        let bytes = transmit.payload_bytes() as u64;
        let Some(start) = self.position(transmit.seq, self.nxt) else { return false };
        // The group may have dropped data that a receiver lacks after catch-up; the receiver's connection
        // still has it.
        let is_kept = start >= self.text.start();
        let is_repeated = bytes > 0 && start + bytes <= self.nxt.min(self.text.end());
        if !self.defers_repairs() || !member.is_led || !is_repeated || !is_kept {
            return false;
        }
        let Transmit { ack, window, options, .. } = *transmit;
        let round_trip_ns = member.round_trip_ns;
        // Requests are compared segment by segment.
        let (mut at, end) = (start, start + bytes);
        while at < end {
            let next = (at + u64::from(self.mss)).min(end);
            self.wanted.push(RepairRequest {
                start: at,
                end: next,
                id,
                has_timed_out: false,
                is_after_timeout: false,
                round_trip_ns,
                head: Head { ack, window, options },
            });
            at = next;
        }
        true
    }

    /// Chooses how each deferred segment is sent, at the end of a poll.
    pub fn decide_repairs(&mut self, now: Instant) {
        let least = match self.config.repairs {
            Repairs::Each => return,
            Repairs::Group { least } => least,
            Repairs::Parity => 2,
        };
        if !self.wanted.is_empty() {
            self.decide_wanted(least, now);
        }
        self.queue_parity(now);
    }

    /// Decides for each segment in `wanted` whether to send it to the group or to single receivers.
    fn decide_wanted(&mut self, least: usize, now: Instant) {
        let predicts = self.controller.is_some();
        self.repaired.forget_before(self.text.start(), least.max(2), predicts);
        let is_over = self.has_sent_all();
        let mut wanted = core::mem::take(&mut self.wanted);
        // A timeout that caused a request was not known to the group when the request was deferred.
        for it in &mut wanted {
            if let Some(Some(member)) = self.members.get(it.id as usize) {
                it.has_timed_out = member.has_timed_out;
                it.is_after_timeout = member.is_after_timeout;
            }
        }
        self.ask_for_parity(&mut wanted, now);
        let what = |it: &RepairRequest| (it.start, it.end, it.has_timed_out);
        wanted.sort_unstable_by_key(|it| (what(it), it.id));
        for same in wanted.chunk_by(|a, b| what(a) == what(b)) {
            let (start, end, has_timed_out) = what(&same[0]);
            let way = match has_timed_out {
                true => Some(Way::Alone(same.len())),
                false => self.repaired.way(same, least, is_over, now),
            };
            self.count_repairs(way, end - start, same, now);
            match way {
                Some(Way::ToGroup) => {
                    self.repairs.push_back(Repair { start, end, way: RepairWay::ToGroup });
                }
                Some(Way::Alone(_)) => {
                    let alone = same.iter().map(|it| (it.id, it.head.clone()));
                    let alone = alone.map(|(id, head)| RepairWay::ToMember(id, head));
                    self.repairs.extend(alone.map(|way| Repair { start, end, way }));
                }
                None => {}
            }
        }
        wanted.clear();
        self.wanted = wanted;
    }

    /// Counts repairs that are being sent as data in flight. Repairs for the leader alone are not counted
    /// here, because the leader's connection counts them.
    fn count_repairs(
        &mut self,
        way: Option<Way>,
        bytes: u64,
        same: &[RepairRequest],
        now: Instant,
    ) {
        let Some(controller) = &mut self.controller else { return };
        let is_leaders = |it: &&RepairRequest| controller.is_led_by(it.id);
        let copies = match way {
            Some(Way::ToGroup) => usize::from(!same.iter().any(|it| is_leaders(&it))),
            Some(Way::Alone(_)) => same.len() - same.iter().filter(is_leaders).count(),
            None => 0,
        };
        controller.count_repairs(bytes as u32 * copies as u32, now);
    }

    /// Returns the next repair to send; `None` if none is left. [`Group::repair_segment`] returns its
    /// segment.
    pub fn poll_repair(&mut self) -> Option<Repair> {
        self.repairs.pop_front()
    }

    /// Returns the segment of `repair`, which must not be a parity packet (for these see [`Group::parity`]).
    /// The data of the segment is empty if all receivers have acknowledged this data in the meantime.
    #[must_use]
    pub fn repair_segment(&self, repair: &Repair, now: Instant) -> Transmit<'_> {
        let ends = self.text.length() == Some(repair.end) && self.nxt > repair.end;
        let segment = self.segment((repair.start, repair.end), ends, now);
        match &repair.way {
            RepairWay::ToGroup | RepairWay::Parity { .. } => segment,
            RepairWay::ToMember(_, Head { ack, window, options }) => {
                Transmit { ack: *ack, window: *window, options: *options, ..segment }
            }
        }
    }
}

/// Maximum number of repairs to remember: more than the segments in a window of 4 MiB.
const MOST_REPAIRED: usize = 4_096;

/// The value of `shared` that represents a share of 1.
const ALL: u32 = 1 << 16;
/// The reciprocal of the weight (1/32) of the latest segment in the moving average.
const SHARE_WEIGHT: u32 = 32;

#[cfg(test)]
mod tests {
    use rxo_frame::Duration;

    use super::*;

    impl RepairRequest {
        pub(crate) fn of_test(
            (start, end): (u64, u64),
            id: MemberId,
            round_trip: Duration,
        ) -> Self {
            let (ack, options) = (rxo_wire::SeqNumber(0), OptionBytes::default());
            let head = Head { ack, window: 0, options };
            let round_trip_ns = round_trip.as_nanos() as u64;
            let (has_timed_out, is_after_timeout) = (false, false);
            Self { start, end, id, has_timed_out, is_after_timeout, round_trip_ns, head }
        }
    }

    fn wanted(start: u64, id: MemberId) -> RepairRequest {
        RepairRequest::of_test((start, start + 1_000), id, Duration::from_millis(1))
    }

    #[test]
    fn a_second_receiver_within_a_round_trip_makes_it_a_repair_for_all() {
        let mut repaired = Repaired::default();
        let at = |us| Instant::from_micros(us);
        let mut way = |id, us| repaired.way(&[wanted(0, id)], 2, false, at(us));
        assert_eq!(way(1, 0), Some(Way::Alone(1)));
        assert_eq!(way(2, 999), Some(Way::ToGroup));
        assert_eq!(way(3, 1_500), None);
        // The repair may have been lost again.
        assert_eq!(way(3, 1_999), Some(Way::Alone(1)));
        assert_eq!(way(4, 5_000), Some(Way::Alone(1)), "too late");
    }

    #[test]
    fn once_the_fin_has_left_a_repair_goes_to_the_group_once() {
        let mut repaired = Repaired::default();
        let two = [wanted(0, 1), wanted(0, 2)];
        let mut way = |ms: u64| repaired.way(&two, 2, true, Instant::from_micros(1_000 * ms));
        assert_eq!(way(1), Some(Way::ToGroup));
        for ms in [5, 10, 20] {
            assert!(matches!(way(ms), Some(Way::Alone(_))), "{ms} ms");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded_and_forgotten() {
        let mut repaired = Repaired::default();
        for start in 0..3 * MOST_REPAIRED as u64 {
            repaired.way(&[wanted(start, 1)], 2, false, Instant::ZERO);
            assert!(repaired.last.len() <= MOST_REPAIRED);
        }
        repaired.forget_before(u64::MAX, 2, true);
        assert!(repaired.last.is_empty());
    }

    #[test]
    fn what_most_want_twice_goes_to_the_group_at_once() {
        for (predicts, least, first) in
            [(true, 2, Way::ToGroup), (true, 3, Way::Alone(1)), (false, 2, Way::Alone(1))]
        {
            let mut repaired = Repaired::default();
            for start in 0..100 {
                let two = [wanted(1_000 * start, 1), wanted(1_000 * start, 2)];
                repaired.way(&two, least, false, Instant::ZERO);
            }
            repaired.forget_before(100_000, least, predicts);
            let way = repaired.way(&[wanted(100_000, 1)], least, false, Instant::ZERO);
            assert_eq!(way, Some(first), "{predicts}, {least}");
            let late = [wanted(100_000, 2)];
            let again = repaired.way(&late, least, false, Instant::ZERO);
            assert_eq!(again.is_none(), first == Way::ToGroup, "it is on its way");
        }
    }
}
