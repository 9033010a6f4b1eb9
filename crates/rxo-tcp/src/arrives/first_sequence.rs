//! The first step for an arriving segment: check the timestamp (RFC 7323, section 5.3), then the sequence
//! number (RFC 9293, section 3.10.7.4).

use core::ops::ControlFlow;

use rxo_frame::Instant;
use rxo_wire::TcpFlags;
use rxo_wire::tcp::SackBlock;

use crate::challenge::Answer;
use crate::segment::Segment;
use crate::sequence::distance;
use crate::timer::Timer;
use crate::{Connection, State};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Checks the timestamp, then the sequence number. Drops an unacceptable segment, and answers it with an
    /// ACK unless it is a reset.
    pub(super) fn check_sequence(&mut self, now: Instant, segment: &Segment<B>) -> ControlFlow<()> {
        self.check_timestamp(now, segment)?;
        if self.is_acceptable(segment) || self.opens_simultaneously(segment) {
            return ControlFlow::Continue(());
        }
        if !segment.has(TcpFlags::RST) {
            self.answer_unacceptable(now, segment);
        }
        ControlFlow::Break(())
    }

    /// Checks the timestamp of a segment (PAWS; RFC 7323, sections 3.2 and 5.3, R1), and drops a segment
    /// whose timestamp is old. Resets are not checked.
    fn check_timestamp(&mut self, now: Instant, segment: &Segment<B>) -> ControlFlow<()> {
        if !self.timestamps.is_agreed || segment.has(TcpFlags::RST) {
            return ControlFlow::Continue(());
        }
        match segment.options.timestamp {
            None => ControlFlow::Break(()),
            Some(timestamp) if self.timestamps.is_old(timestamp.value, now) => {
                self.answer_unacceptable(now, segment);
                ControlFlow::Break(())
            }
            Some(_) => ControlFlow::Continue(()),
        }
    }

    /// Returns `true` if `segment` is acceptable by the table in RFC 9293, section 3.10.7.4, or by one of two
    /// additions that Linux and BSD make.
    ///
    /// First, a segment may begin at the right edge of the window, because a peer that has filled the window
    /// sends its next segment there. Second, data may cover the whole window and more: its ACK counts, even
    /// while the window is closed (MUST-66), and [`Self::trim_to_window`] removes the data that does not fit. A
    /// reset at the right edge is not acceptable (RFC 5961, section 3.2), unless the window is closed.
    fn is_acceptable(&self, segment: &Segment<B>) -> bool {
        let (nxt, edge) = (self.rcv.nxt, self.rcv.nxt + self.rcv.wnd());
        let last = segment.seq + segment.len().saturating_sub(1);
        let is_at_edge = segment.seq == edge && edge != nxt;
        let begins_in_time =
            edge.is_at_or_after(segment.seq) && !(is_at_edge && segment.has(TcpFlags::RST));
        segment.seq == nxt || begins_in_time && last.is_at_or_after(nxt)
    }

    /// Records the timestamp of `segment` (RFC 7323, section 4.3, rule 2). Call this method only after the ACK
    /// number is found valid: a forged timestamp would make all later timestamps old.
    pub(super) fn remember_timestamp(&mut self, now: Instant, segment: &Segment<B>) {
        if let Some(timestamp) = segment.options.timestamp.filter(|_| self.timestamps.is_agreed)
            && !segment.has(TcpFlags::RST)
        {
            self.timestamps.remember(timestamp, segment.seq, now);
        }
    }

    fn answer_unacceptable(&mut self, now: Instant, segment: &Segment<B>) {
        let is_plain_syn = segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::ACK);
        let is_old_syn = is_plain_syn && segment.seq == self.rcv.irs;
        if let State::SynReceived(state) = &mut self.state
            && is_old_syn
        {
            // The SYN-ACK was lost.
            state.syn.is_due = true;
            return;
        }
        if self.state == State::TimeWait && segment.has(TcpFlags::FIN) {
            self.timers.arm(Timer::TimeWait, now + self.config.time_wait);
        }
        // The limit keeps two sides that disagree from answering each other without end, and bounds the answers
        // to a flood of SYNs (RFC 5961, section 7).
        let is_counted = segment.is_empty() || segment.has(TcpFlags::SYN);
        if !is_counted || self.challenges.may_send(Answer::Challenge, now) {
            let duplicate = self.duplicate_of(segment);
            duplicate.into_iter().for_each(|block| self.rcv.sack.received_again(block));
            self.acks.answer_alone();
        }
    }

    /// Returns the first part of the data of `segment` that was received before, for a D-SACK block (RFC
    /// 2883, section 4). `None` if all data is new, or if SACK is not in use. Segments with an old timestamp
    /// count as well (section 4.3).
    pub(super) fn duplicate_of(&self, segment: &Segment<B>) -> Option<SackBlock> {
        let bytes = segment.text_bytes();
        let may_be_one = self.uses_sack && bytes > 0;
        may_be_one.then(|| self.rcv.duplicate_in(segment.seq, segment.seq + bytes)).flatten()
    }

    /// Returns `true` if `segment` begins at RCV.NXT, fits the window, and no data is held out of order. Such a
    /// segment needs no trimming and contains no duplicate data.
    pub(super) fn is_next(&self, segment: &Segment<B>) -> bool {
        segment.seq == self.rcv.nxt && segment.len() <= self.rcv.wnd() && !self.rcv.has_gap()
    }

    /// Trims `segment` to the part inside the window. Returns `true` if data beyond the right edge was removed:
    /// then the caller must acknowledge at once, to report the edge.
    pub(super) fn trim_to_window(&mut self, segment: &mut Segment<B>) -> bool {
        let before = distance(segment.seq, self.rcv.nxt);
        if before > 0 {
            let cut = before.min(segment.text_bytes());
            segment.payload = segment.payload.take().and_then(|text| text.without_front(cut));
            segment.seq = segment.seq + before;
            if cut < before {
                segment.flags = segment.flags.without(TcpFlags::FIN);
            }
        }
        let offset = distance(self.rcv.nxt, segment.seq);
        let room = self.rcv.wnd().saturating_sub(offset);
        let exceeds = segment.len() > room;
        if exceeds {
            segment.payload = segment.payload.take().and_then(|text| text.truncated(room));
            segment.flags = segment.flags.without(TcpFlags::FIN);
        }
        exceeds
    }
}
