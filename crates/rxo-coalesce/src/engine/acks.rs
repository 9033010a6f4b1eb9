//! What flows acknowledge, where pure ACKs are aggregated: which of them may be held, and what is
//! remembered of every segment for that.
//!
//! Separate from the tiers because it is the only state that outlives what is held. Under other policies
//! nothing is remembered, and nothing here is asked.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::{FlowKey, Parsed, TcpFlags, Transport};

use super::Engine;
use super::cursor::flow_key;
use crate::acks::{Known, News};
use crate::held::Segment;
use crate::{BypassReason, Kind, Verdict};

impl<B: FrameBuffer> Engine<B> {
    /// The verdict on a pure ACK of a flow that holds nothing: where the last speaks for all it has to say
    /// more than the one before, and SACK blocks say more unless it was overtaken.
    #[inline(always)]
    pub(super) fn ack_alone(&self, segment: &Segment) -> Verdict {
        if self.memory.is_off() {
            return Verdict::Start(None);
        }
        let said = segment.acks.said;
        let known = match self.memory.recall(segment.acks.flow, || self.pair(&segment.key)) {
            Known::Said(last) => Some(last.news(said)),
            Known::AtLeast(ack) => said.ack.is_before(ack).then_some(News::Less),
            Known::Nothing => None,
        };
        match known {
            Some(News::Same) | None if segment.acks.says_more => Verdict::Start(None),
            Some(News::More) => Verdict::Start(None),
            Some(News::Same) => Verdict::Bypass(BypassReason::DuplicateAck),
            Some(News::Less) => Verdict::Bypass(BypassReason::OldAck),
            None => Verdict::Bypass(BypassReason::FirstAck),
        }
    }

    /// Whether a pure ACK that may follow those held at `place` leaves the last of them something to
    /// say. After window updates there and back nothing would be left but what was said before them:
    /// where the last speaks for all, that would be a duplicate that nobody sent.
    pub(super) fn says_on(&self, place: u16, segment: &Segment) -> bool {
        let (held, said) = (&self.store.acks[usize::from(place)], segment.acks.said);
        if self.memory.is_off() || segment.acks.says_more || said.advances(held.said) {
            return true;
        }
        let pair = || self.pair(&segment.key);
        matches!(self.memory.recall(held.flow, pair), Known::Said(before) if before != said)
    }

    /// Records what `segment` says, now the last at `place`.
    #[inline(always)]
    pub(super) fn note(&mut self, place: u16, segment: &Segment) {
        if !self.memory.is_off() {
            self.store.acks[usize::from(place)] = segment.acks;
        }
    }

    /// Records what a candidate says after it was delivered alone. The first pure ACK of a flow is remembered:
    /// the next one is compared with it.
    #[inline(always)]
    pub(super) fn note_unheld(&mut self, segment: &Segment, verdict: Verdict) {
        if segment.kind() == Kind::Data {
            if !self.memory.is_off() && segment.at.is_plain() {
                self.memory.raise(segment.acks.flow, segment.acks.said.ack);
            }
        } else if verdict == Verdict::Bypass(BypassReason::FirstAck) {
            self.memory.remember(segment.acks.flow, segment.acks.said);
        }
    }

    /// Records what a packet says that bypasses for `reason` and could not have been held: it is in doubt
    /// whether the next pure ACK repeats it. A packet that its receiver drops changes nothing.
    pub(super) fn note_bypassed(
        &mut self,
        frame: &Frame<B>,
        parsed: &Parsed,
        key: &FlowKey,
        reason: BypassReason,
    ) {
        if self.memory.is_off() || reason == BypassReason::BadIpChecksum {
            return;
        }
        if reason.may_hide_segment() {
            self.memory.doubt(self.pair(key));
        }
        let Transport::Tcp(tcp) = parsed.transport else { return };
        if !self.is_intact(frame, parsed) {
            return;
        }
        let flow = self.hasher.hash(&flow_key(parsed.key, frame));
        if tcp.flags.intersects(TcpFlags::SYN.union(TcpFlags::RST)) {
            self.memory.forget(flow);
        } else if tcp.flags.contains(TcpFlags::ACK) {
            self.memory.raise(flow, tcp.ack);
        }
    }
}
