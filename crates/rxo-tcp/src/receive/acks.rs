//! The pending ACKs: their number, their content, and their timing.
//!
//! Separate because aggregation must not change the ACKs. Data is counted segment by segment, so the segments
//! of an aggregate cause the ACKs that they would have caused alone (Menon and Zwaenepoel 2008, section 3.4).
//! The content of an ACK is fixed when it becomes due, as if it were sent at once. ACKs that differ only in ACK
//! number, window and TSecr are sent as one template (section 4).

use alloc::vec::Vec;
use core::num::NonZeroU16;

use rxo_wire::SeqNumber;
use rxo_wire::tcp::SackBlocks;

use super::repeats::Repeats;
use crate::AckPolicy;

/// One ACK that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingAck {
    /// SEG.ACK: the ACK number.
    pub ack: SeqNumber,
    /// TSecr, the echoed timestamp; meaningless without timestamps.
    pub echo: u32,
    /// SEG.WND: the window field of the header.
    pub window: u16,
    /// `true` if ECE is set, which reports a congestion mark.
    pub(crate) has_mark: bool,
    pub(crate) kind: AckKind,
}

/// The treatment of a pending ACK: as part of a template, or as a segment of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckKind {
    /// The ACK is sent together with others that differ only in ACK number, window and TSecr, or on a segment with
    /// data.
    Plain,
    /// The ACK reports that a gap is filled. It is sent as a segment of its own, and no later ACK replaces it.
    /// The reason: a peer in recovery sends no tail loss probe (RFC 8985, section 7.2). If this ACK were lost
    /// and no other ACK followed, the peer would wait for its retransmission timeout (RFC 2525, section 2.13).
    Filled,
    /// The ACK is sent as a segment of its own, because the peer counts duplicates.
    Alone,
    /// The ACK is sent as a segment of its own, with the next SACK option in the queue.
    AloneWithSack,
}

/// The pending ACKs, oldest first. Allocates memory when needed.
#[derive(Debug)]
pub(crate) struct Acks {
    pending: Vec<PendingAck>,
    /// The SACK blocks of the pending ACKs that report any, in the order of the ACKs.
    sacks: Vec<SackBlocks>,
    /// The number of ACKs at the front of `pending` that were sent. These ACKs are kept
    /// until the next call of [`Acks::take`], for the caller to read.
    left: u32,
    /// The number of bytes of received data that no pending ACK covers.
    unacknowledged_bytes: u32,
    /// The number of queued SACK options from which on duplicate ACKs are dropped: a duplicate is dropped if
    /// the next one repeats all of its blocks.
    brief_from: u8,
    repeats: Repeats,
    segment: Within,
    /// The rule that selects the segments that cause an ACK; `None` if every second segment causes one.
    spread: Option<Spread>,
    /// The number of further segments with data that are acknowledged at once.
    quick: u16,
    /// `true` if an ACK was queued since the last call of [`Acks::take_has_queued`].
    has_queued: bool,
}

/// The segment that is being processed, which causes at most one ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// No segment is being processed.
    Nothing,
    /// A segment is being processed and has not caused an ACK yet.
    Unanswered,
    /// A segment is being processed and causes an ACK.
    Answered {
        /// `true` if the ACK is sent as a segment of its own.
        is_alone: bool,
    },
}

impl Acks {
    /// Creates an empty queue. The first `quick` segments are acknowledged at once, the later ones by
    /// `policy`.
    pub(crate) fn new(quick: u16, policy: AckPolicy) -> Self {
        Self {
            pending: Vec::new(),
            sacks: Vec::new(),
            left: 0,
            unacknowledged_bytes: 0,
            brief_from: if policy == AckPolicy::OneForATurn { 0 } else { MOST_SACKS as u8 / 2 },
            repeats: Repeats::default(),
            segment: Within::Nothing,
            spread: Spread::of(policy),
            quick,
            has_queued: false,
        }
    }

    /// Begins the processing of a segment, which causes at most one ACK (RFC 5681, section 4.2).
    pub(crate) fn begin_segment(&mut self) {
        self.segment = Within::Unanswered;
    }

    /// Ends the processing of a segment. Returns `None` if the segment causes no ACK; otherwise
    /// `Some`, with `true` if the ACK is sent as a segment of its own.
    pub(crate) fn end_segment(&mut self) -> Option<bool> {
        match core::mem::replace(&mut self.segment, Within::Nothing) {
            Within::Answered { is_alone } => Some(is_alone),
            _ => None,
        }
    }

    /// Records that the segment that is being processed causes an ACK.
    pub(crate) fn answer(&mut self) {
        let is_alone = self.segment == Within::Answered { is_alone: true };
        self.segment = Within::Answered { is_alone };
    }

    /// Records that the segment that is being processed causes an ACK that is sent as a segment of
    /// its own: the peer counts duplicates, and each duplicate carries SACK blocks.
    pub(crate) fn answer_alone(&mut self) {
        self.segment = Within::Answered { is_alone: true };
    }

    /// Requests that the next segment is acknowledged at once.
    pub(crate) fn answer_next(&mut self) {
        self.quick = self.quick.max(1);
    }

    /// Counts a segment with `bytes` bytes of in-order data. Returns `true` if the segment causes an
    /// ACK, as every second full segment does (RFC 9293, section 3.8.6.3).
    #[inline]
    pub(crate) fn count(&mut self, bytes: u32, full_segment: u32) -> bool {
        self.unacknowledged_bytes = self.unacknowledged_bytes.saturating_add(bytes);
        let is_due = match &mut self.spread {
            None => self.unacknowledged_bytes >= full_segment.saturating_mul(2),
            Some(spread) => spread.count(bytes, full_segment),
        };
        let causes_ack = is_due || self.quick > 0;
        self.quick = self.quick.saturating_sub(1);
        causes_ack
    }

    /// Counts up to `count` segments of `bytes` bytes each, until one causes an ACK. Returns the
    /// number of segments counted, and `true` if the last of them causes an ACK.
    #[inline]
    pub(crate) fn count_alike(
        &mut self,
        (bytes, count): (u32, u32),
        full_segment: u32,
    ) -> (u32, bool) {
        if self.spread.is_some() {
            return (1, self.count(bytes, full_segment));
        }
        let lacking = full_segment.saturating_mul(2).saturating_sub(self.unacknowledged_bytes);
        // Full segments need no division.
        let needed = match bytes {
            _ if self.quick > 0 || lacking <= bytes => 1,
            _ if lacking - bytes <= bytes => 2,
            _ => lacking.div_ceil(bytes.max(1)),
        };
        let counted = needed.min(count);
        self.unacknowledged_bytes = self.unacknowledged_bytes.saturating_add(counted * bytes);
        self.quick = self.quick.saturating_sub(1);
        (counted, counted == needed)
    }

    /// Returns `true` if data waits for a delayed ACK.
    pub(crate) fn is_delaying(&self) -> bool {
        self.unacknowledged_bytes > 0
    }

    /// Returns `true` if at least one full segment waits for a delayed ACK.
    pub(crate) fn is_delaying_a_whole(&self, full_segment: u32) -> bool {
        self.unacknowledged_bytes >= full_segment && full_segment > 0
    }

    /// Returns `true` if an ACK was queued since the last call. In that case, any data that waits
    /// for a delayed ACK has arrived after the queued ACK.
    pub(crate) fn take_has_queued(&mut self) -> bool {
        core::mem::take(&mut self.has_queued)
    }

    /// Returns the ACKs that have not been sent.
    #[inline]
    fn waiting(&self) -> &[PendingAck] {
        self.pending.get(self.left as usize..).unwrap_or_default()
    }

    /// Returns the number of pending ACKs.
    pub(crate) fn count_pending(&self) -> usize {
        self.waiting().len()
    }

    /// Merges the plain ACKs at the end of the queue that have equal ECE marks into one stretch ACK, with the
    /// ACK number of the last and the echoed timestamp of the first (RFC 7323, section 4.3). An ACK of a filled
    /// gap at the very end of the queue is kept.
    pub(crate) fn stretch(&mut self) {
        let filled = match self.waiting() {
            [.., last] if last.kind == AckKind::Filled => self.pending.pop(),
            _ => None,
        };
        self.stretch_plain();
        self.pending.extend(filled);
    }

    #[inline]
    fn stretch_plain(&mut self) {
        let pending = self.waiting();
        let Some(last) = pending.last().copied() else { return };
        let is_alike =
            |ack: &&PendingAck| (ack.kind, ack.has_mark) == (AckKind::Plain, last.has_mark);
        let alike = pending.iter().rev().take_while(is_alike).count();
        let first = self.pending.len() - alike;
        if let Some(earliest) = self.pending.get(first).filter(|_| alike > 1) {
            let one = PendingAck { echo: earliest.echo, ..last };
            self.pending.truncate(first);
            self.pending.push(one);
        }
    }

    /// Replaces all pending ACKs by the last of them, with its SACK blocks, but with the echoed timestamp of
    /// the first.
    pub(crate) fn keep_last(&mut self) {
        let first = self.waiting().first().copied();
        let (Some(first), true) = (first, self.count_pending() > 1) else { return };
        let Some(last) = self.pending.pop() else { return };
        // ACKs that were sent have already taken their blocks.
        let sack = self.sacks.pop().filter(|_| last.kind == AckKind::AloneWithSack);
        self.sacks.clear();
        self.sacks.extend(sack);
        self.pending.truncate(self.left as usize);
        self.pending.push(PendingAck {
            echo: first.echo,
            has_mark: first.has_mark || last.has_mark,
            ..last
        });
    }

    /// Returns `true` if a segment with data can carry all pending ACKs.
    pub(crate) fn can_piggyback(&self) -> bool {
        let pending = self.waiting();
        pending.len() < 2 && pending.iter().all(|ack| ack.kind == AckKind::Plain)
    }

    /// Drops all pending ACKs, because a segment with SEG.ACK = RCV.NXT is sent or the connection ends.
    pub(crate) fn piggyback(&mut self) {
        self.pending.clear();
        self.sacks.clear();
        (self.left, self.unacknowledged_bytes) = (0, 0);
        if self.segment != Within::Nothing {
            self.segment = Within::Unanswered;
        }
    }

    /// Removes the next ACKs that can be sent together: a single ACK, or a run of plain ACKs with equal ECE
    /// marks. Returns the first ACK with its SACK blocks; [`Acks::later`] returns the later ACKs. `None` if no
    /// ACK is pending.
    pub(crate) fn take(&mut self) -> Option<(PendingAck, SackBlocks)> {
        self.pending.drain(..self.left as usize);
        self.left = 0;
        // Memory grown by a flood is freed, so that it need not be counted for each connection.
        if self.pending.len() < MOST_KEPT && self.pending.capacity() > MOST_KEPT {
            self.pending.shrink_to(MOST_KEPT);
        }
        let first = self.pending.first().copied()?;
        let is_alike =
            |ack: &&PendingAck| (ack.kind, ack.has_mark) == (AckKind::Plain, first.has_mark);
        self.left = self.pending.iter().take_while(is_alike).count().max(1) as u32;
        let has_sack = first.kind == AckKind::AloneWithSack && !self.sacks.is_empty();
        let sack = if has_sack { self.sacks.remove(0) } else { SackBlocks::default() };
        Some((first, sack))
    }

    /// Returns the ACKs to send together with the ACK that the last call of [`Acks::take`] returned.
    pub(crate) fn later(&self) -> &[PendingAck] {
        self.pending.get(1..self.left as usize).unwrap_or_default()
    }

    /// Returns `true` if the window of the last ACK may still be changed: the ACK has not been sent, and its
    /// ACK number is `nxt`.
    pub(crate) fn may_update(&self, nxt: SeqNumber) -> bool {
        let last = self.waiting().last();
        last.is_some_and(|last| last.ack == nxt && last.kind != AckKind::Alone)
    }

    /// Changes the window of the last ACK to `window`.
    pub(crate) fn update(&mut self, window: u16) {
        if let Some(last) = self.pending.last_mut() {
            last.window = window;
        }
    }

    /// Adds the ACK `ack` with the SACK blocks `sack` to the queue.
    ///
    /// `ack` replaces the last queued ACK if `sack` repeats all blocks of that ACK and the peer needs no more
    /// duplicates. The condition matters because the peer would retransmit a block that no ACK reports. If the
    /// queue of SACK options is full, `ack` always replaces the last ACK with SACK blocks.
    pub(crate) fn queue_with_sack(&mut self, ack: PendingAck, sack: SackBlocks) {
        if sack.is_empty() {
            return self.queue(ack);
        }
        let is_enough =
            self.repeats.count(ack.ack) && self.sacks.len() >= usize::from(self.brief_from);
        let last = self.waiting().last();
        if let Some(last) = last.filter(|last| last.kind == AckKind::AloneWithSack)
            && (self.sacks.len() == MOST_SACKS
                || is_enough && self.is_repeated_by(last, &ack, &sack))
        {
            self.forget_last();
        }
        self.queue(ack);
        if let Some(last) = self.pending.last_mut().filter(|_| self.sacks.len() < MOST_SACKS) {
            last.kind = AckKind::AloneWithSack;
            self.sacks.push(sack);
        }
    }

    /// Adds the ACK `ack` without SACK blocks.
    #[inline]
    pub(crate) fn queue(&mut self, ack: PendingAck) {
        (self.unacknowledged_bytes, self.has_queued) = (0, true);
        if self.pending.len() == MOST_PENDING {
            self.pending.drain(..self.left as usize);
            self.left = 0;
        }
        if self.pending.len() == MOST_PENDING {
            self.forget_last();
        }
        self.pending.push(ack);
    }

    /// Returns `true` if `ack` with the SACK blocks `sack` makes `last`, the last queued ACK,
    /// redundant: both have the same ACK number and ECE mark, and `sack` contains all SACK blocks of `last`.
    /// The last queued SACK option must belong to `last`. A D-SACK block is sent only once, so nothing makes
    /// it redundant.
    fn is_repeated_by(&self, last: &PendingAck, ack: &PendingAck, sack: &SackBlocks) -> bool {
        let is_alike = (last.ack, last.has_mark) == (ack.ack, ack.has_mark);
        is_alike
            && self.sacks.last().is_some_and(|own| !own.has_duplicate(ack.ack) && sack.cover(own))
    }

    /// Returns the number of received segments of `bytes` bytes that together cause one ACK,
    /// which is due for two segments of `full_segment` bytes. `None` if received data is not acknowledged
    /// yet, if segments are acknowledged at once, or if ACKs are spread over time.
    #[inline]
    pub(crate) fn segments_for_one(&self, bytes: u32, full_segment: u32) -> Option<u32> {
        let is_steady = self.quick == 0 && self.unacknowledged_bytes == 0 && self.spread.is_none();
        is_steady.then(|| full_segment.saturating_mul(2).div_ceil(bytes.max(1)).max(1))
    }

    /// Returns the number of ACKs that can be added before the last queued one must be dropped.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        MOST_PENDING - self.pending.len()
    }

    /// Adds all of `acks` without SACK blocks. The caller has checked that the queue has space for all.
    #[inline(always)]
    pub(crate) fn queue_each(&mut self, acks: impl Iterator<Item = PendingAck>) {
        (self.unacknowledged_bytes, self.has_queued) = (0, true);
        self.pending.extend(acks);
    }

    /// Drops the last pending ACK, because the queue is full: the owner has not sent for a long time. The next
    /// ACK acknowledges the same data.
    fn forget_last(&mut self) {
        if self.pending.pop().is_some_and(|last| last.kind == AckKind::AloneWithSack) {
            self.sacks.pop();
        }
    }

    /// Frees the memory of the queue if no ACK is pending. The memory is allocated again when needed.
    pub(crate) fn free_unused(&mut self) {
        if self.waiting().is_empty() {
            (self.pending, self.left) = (Vec::new(), 0);
        }
        if self.sacks.is_empty() {
            self.sacks = Vec::new();
        }
    }
}

/// Chooses the segments that cause an ACK when many receivers acknowledge the same segments. Only
/// in-order data is counted; other ACKs in between have no effect. Thus receivers with different
/// offsets continue to acknowledge different segments.
#[derive(Clone, Copy, Debug)]
struct Spread {
    segments: NonZeroU16,
    /// The offset in segments by which the first ACK comes earlier. Applied and set to 0 at the
    /// first segment, whose size determines the offset in bytes.
    offset: u16,
    /// Number of bytes received since the last ACK was due.
    bytes: u32,
}

impl Spread {
    fn of(policy: AckPolicy) -> Option<Self> {
        match policy {
            AckPolicy::Spread { segments, offset } => {
                let segments = NonZeroU16::new(segments).unwrap_or(NonZeroU16::MIN);
                Some(Self { segments, offset, bytes: 0 })
            }
            AckPolicy::EverySecondSegment | AckPolicy::OneForATurn => None,
        }
    }

    /// Counts a segment with `bytes` bytes of data. Returns `true` if an ACK is due.
    fn count(&mut self, bytes: u32, full_segment: u32) -> bool {
        let most = u32::from(self.segments.get()).saturating_mul(full_segment);
        let skipped = u32::from(core::mem::take(&mut self.offset)).saturating_mul(full_segment);
        let after = self.bytes.saturating_add(skipped).saturating_add(bytes);
        self.bytes = if after >= most { after % most.max(1) } else { after };
        after >= most
    }
}

/// Maximum number of pending ACKs: enough for 2,048 segments, several full batches. At the limit, a new ACK
/// replaces the last pending one. No data stays unacknowledged, because ACKs are cumulative.
const MOST_PENDING: usize = 1_024;
/// Maximum number of queued SACK options. A peer needs the newest option, and some duplicates.
const MOST_SACKS: usize = 64;
/// Maximum number of ACKs whose memory (3 KiB) is kept when none is pending. A full batch of frames
/// causes no more ACKs.
const MOST_KEPT: usize = 256;

#[cfg(test)]
mod tests;
