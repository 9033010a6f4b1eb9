//! The rules for pure ACKs that need each flow's last ACK: which ACKs may be held, and which ACK number each
//! segment records for later decisions.
//!
//! Separate from the tiers because each flow's last ACK is the only state that outlives the held segments.
//! Under policies that do not aggregate several pure ACKs into one, this module records nothing.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::{FlowKey, Parsed, TcpFlags, Transport};

use super::Engine;
use super::cursor::flow_key;
use crate::ack_point::AckChange;
use crate::acks::FlowRecord;
use crate::held::Segment;
use crate::{BypassReason, Kind, Verdict};

impl<B: FrameBuffer> Engine<B> {
    /// Returns the verdict on a pure ACK whose flow holds nothing. If only the last ACK is delivered, an ACK may
    /// be held only if it is newer than the last recorded ACK. An ACK with SACK blocks counts as newer, unless
    /// its ACK number is lower than the recorded one.
    #[inline(always)]
    pub(super) fn ack_alone(&self, segment: &Segment) -> Verdict {
        if self.memory.is_off() {
            return Verdict::Start(None);
        }
        let point = segment.acks.point;
        let known = match self.memory.recall(segment.acks.flow, || self.pair(&segment.key)) {
            FlowRecord::Last(last) => Some(last.compare(point)),
            FlowRecord::AtLeast(ack) => point.ack.is_before(ack).then_some(AckChange::Less),
            FlowRecord::Nothing => None,
        };
        match known {
            Some(AckChange::Same) | None if segment.acks.has_other_content => Verdict::Start(None),
            Some(AckChange::More) => Verdict::Start(None),
            Some(AckChange::Same) => Verdict::Bypass(BypassReason::DuplicateAck),
            Some(AckChange::Less) => Verdict::Bypass(BypassReason::OldAck),
            None => Verdict::Bypass(BypassReason::FirstAck),
        }
    }

    /// Returns `true` unless appending `segment` would make the last ACK that `flow` holds equal to the last
    /// delivered ACK. For example, a window update and then its reversal do so. If only the last ACK is
    /// delivered, the receiver would then get a duplicate ACK that the peer never sent.
    pub(super) fn adds_to(&self, flow: u16, segment: &Segment) -> bool {
        let (held, point) = (&self.store.acks[usize::from(flow)], segment.acks.point);
        if self.memory.is_off() || segment.acks.has_other_content || point.advances(held.point) {
            return true;
        }
        let pair = || self.pair(&segment.key);
        matches!(self.memory.recall(held.flow, pair), FlowRecord::Last(before) if before != point)
    }

    /// Records the ACK number and window of `segment`, now the last one that `flow` holds.
    #[inline(always)]
    pub(super) fn note(&mut self, flow: u16, segment: &Segment) {
        if !self.memory.is_off() {
            self.store.acks[usize::from(flow)] = segment.acks;
        }
    }

    /// Records the ACK number of a candidate that was delivered alone. The first pure ACK of a flow is
    /// recorded so that the flow's next pure ACK can be compared with it.
    #[inline(always)]
    pub(super) fn note_unheld(&mut self, segment: &Segment, verdict: Verdict) {
        if segment.kind() == Kind::Data {
            if !self.memory.is_off() && segment.at.is_plain() {
                self.memory.raise(segment.acks.flow, segment.acks.point.ack);
            }
        } else if verdict == Verdict::Bypass(BypassReason::FirstAck) {
            self.memory.remember(segment.acks.flow, segment.acks.point);
        }
    }

    /// Updates the recorded ACKs after a packet that bypasses for `reason`: a pure ACK that repeats the packet's
    /// ACK number is a duplicate. Ignores packets that their receiver drops, for example because of a wrong
    /// checksum.
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
            self.memory.invalidate(self.pair(key));
        }
        let Transport::Tcp(tcp) = parsed.transport else { return };
        if !self.is_intact(frame, parsed) {
            return;
        }
        let hash = self.hasher.hash(&flow_key(parsed.key, frame));
        if tcp.flags.intersects(TcpFlags::SYN.union(TcpFlags::RST)) {
            self.memory.forget(hash);
        } else if tcp.flags.contains(TcpFlags::ACK) {
            self.memory.raise(hash, tcp.ack);
        }
    }
}
