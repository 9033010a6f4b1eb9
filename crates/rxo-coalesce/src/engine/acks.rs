//! Taking pure ACKs, where the policy aggregates them.
//!
//! Plain ones go the short way: a look-up, and a few compares with the last one held. The full way is
//! that of data: judge by itself, find the flow, judge against what is held, act.

use rxo_frame::{Frame, Instant};
use rxo_wire::tcp::OptionLayout;
use rxo_wire::{FlowHash, FlowKey, Parsed, Plain, SeqNumber, TcpFlags, TcpSegment};

use super::Engine;
use super::apply::flow_key;
use super::batch::Batch;
use super::run::Verification;
use crate::acks::{
    AckPoint, AckVerdict, Known, News, ack_candidate, ack_verdict, follows, is_pure,
};
use crate::expected::Shape;
use crate::held::{First, HeldAcks};
use crate::single::Starts;
use crate::{BypassReason, Candidate, FlushReason, Kind};

impl<B: AsRef<[u8]>> Engine<B> {
    /// Whether the full rules for pure ACKs are to judge this frame.
    #[inline]
    pub(super) fn aggregates_ack(&self, parsed: &Parsed) -> bool {
        self.ack_limit >= 2 && is_pure(parsed)
    }

    /// Appends the pure ACK in `slot`, whose IP header begins at `network`, to those of its flow, if it
    /// is guessed where they are held and it may follow them. `None` when more has to be known.
    #[inline(always)]
    pub(super) fn take_next_ack<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let frame = batch.get(slot)?;
        let packet = frame.bytes().get(network..)?;
        let place = self.recent.guess::<S>(packet)?;
        let held = self.store.held.get(usize::from(place))?;
        if held.kind() != Kind::PureAck || !self.store.links.is_last_of(held.chain.tail, place) {
            return None;
        }
        let said = follows::<S, B>(batch.get(held.chain.tail)?, frame, network)?;
        if !self.is_trusted(frame) && !Verification::of(held).holds(frame, self.config.summer) {
            return None;
        }
        self.append_ack(place, slot, (said, false), self.now);
        Some(slot + 1)
    }

    /// Takes a plain pure ACK whose IP header begins at `network`, the first of its flow. `None` when
    /// only the full rules can tell.
    #[inline(always)]
    pub(super) fn take_first_ack<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        (plain, network): (Plain, usize),
    ) -> Option<u32> {
        let frame = batch.get(slot)?;
        let packet = frame.bytes().get(network..)?;
        if !S::is_checksum_right(packet) || S::may_be_marked_ce(packet) {
            return None;
        }
        if !self.is_trusted(frame) {
            // A copy, so that what was read need not be in memory.
            let escaping = plain;
            if !self.is_sum_right::<S>(&escaping, packet) {
                return None;
            }
        }
        let key = flow_key(plain.key, frame);
        let hash = self.hasher.hash(&key);
        if let Some(place) = self.table.find(&self.store.held, &key, hash) {
            if self.store.held[usize::from(place)].kind() == Kind::PureAck {
                return None;
            }
            self.flush_held(place, FlushReason::Order, self.now);
        }
        let said = AckPoint::read::<S>(packet)?;
        let at = Starts::after(network, S::IP_BYTES);
        if self.may_hold((hash, &key), (said, false), (slot, at)) {
            let first = First::plain::<S, B>((&plain, network), key, frame, slot);
            let place = self.hold_ack(first, hash, (said, false), self.now);
            self.recent.note::<S>(packet, place);
        }
        Some(slot + 1)
    }

    /// Judges the segment without payload in `slot` by all rules and acts.
    pub(super) fn take_ack(&mut self, batch: Batch<'_, B>, slot: u32, parsed: &Parsed) {
        let frame = batch.frame(slot);
        match self.judge_ack(frame, parsed) {
            Ok(tcp) => self.join_ack(batch, slot, parsed, tcp),
            Err(reason) => {
                self.bypass(batch, slot, parsed, reason);
            }
        }
    }

    fn judge_ack<'a>(
        &self,
        frame: &Frame<B>,
        parsed: &'a Parsed,
    ) -> Result<&'a TcpSegment, BypassReason> {
        let tcp = ack_candidate(parsed, frame.bytes(), &self.config.policy)?;
        if frame.gso.is_some() {
            return Err(BypassReason::AlreadyAggregated);
        }
        if self.is_intact(frame, parsed) { Ok(tcp) } else { Err(BypassReason::BadTcpChecksum) }
    }

    fn join_ack(&mut self, batch: Batch<'_, B>, slot: u32, parsed: &Parsed, tcp: &TcpSegment) {
        let frame = batch.frame(slot);
        let key = flow_key(parsed.key, frame);
        let hash = self.hasher.hash(&key);
        let has_blocks = tcp.options == OptionLayout::Other;
        let said = AckPoint { ack: tcp.ack, window: tcp.window };
        let first = First::of(parsed, tcp, key, frame, slot);
        let found = self.table.find(&self.store.held, &key, hash);
        let verdict = found
            .and_then(|place| Some((place, self.ack_verdict(batch, slot, place, (parsed, tcp))?)));
        match verdict {
            Some((place, AckVerdict::Append)) if has_blocks || self.goes_on(place, said) => {
                self.append_ack(place, slot, (said, has_blocks), self.now);
            }
            Some((place, AckVerdict::Append)) => {
                self.flush_held(place, FlushReason::Window, self.now);
                self.hold_ack(first, hash, (said, has_blocks), self.now);
            }
            Some((place, AckVerdict::FlushThenStart(reason))) => {
                self.flush_held(place, reason, self.now);
                self.hold_ack(first, hash, (said, has_blocks), self.now);
            }
            Some((place, AckVerdict::FlushThenBypass(flush, bypass))) => {
                self.flush_held(place, flush, self.now);
                self.deliver_untouched(slot, first.at, bypass);
            }
            None => {
                if let Some(place) = found {
                    self.flush_held(place, FlushReason::Order, self.now);
                }
                if self.may_hold((hash, &key), (said, has_blocks), (slot, first.at)) {
                    self.hold_ack(first, hash, (said, has_blocks), self.now);
                }
            }
        }
    }

    /// The verdict on a pure ACK against the pure ACKs held at `place`; `None` when data is.
    fn ack_verdict(
        &self,
        batch: Batch<'_, B>,
        slot: u32,
        place: u16,
        (parsed, tcp): (&Parsed, &TcpSegment),
    ) -> Option<AckVerdict> {
        if self.store.held[usize::from(place)].kind() != Kind::PureAck {
            return None;
        }
        let (last, last_tcp) = self.last_of(batch, place)?;
        let held = &self.store.held[usize::from(place)];
        let last = Candidate::new(&last, &last_tcp, batch.frame(held.chain.tail));
        Some(ack_verdict(last, Candidate::new(parsed, tcp, batch.frame(slot))))
    }

    /// Whether a pure ACK that says `said` may be held, nothing of its flow being held: where the last
    /// speaks for all it has to say more than the one before, and SACK blocks say more unless it was
    /// overtaken. If it may not it is delivered.
    #[inline(always)]
    fn may_hold(
        &mut self,
        (flow, key): (FlowHash, &FlowKey),
        (said, has_blocks): (AckPoint, bool),
        (slot, at): (u32, Starts),
    ) -> bool {
        if self.memory.is_off() {
            return true;
        }
        let known = match self.memory.recall(flow, || self.pair(key)) {
            Known::Said(last) => Some(last.news(said)),
            Known::AtLeast(ack) => said.ack.is_before(ack).then_some(News::Less),
            Known::Nothing => None,
        };
        let news = match known {
            Some(News::Same) | None if has_blocks => Some(News::More),
            known => known,
        };
        let reason = match news {
            Some(News::More) => return true,
            Some(News::Same) => BypassReason::DuplicateAck,
            Some(News::Less) => BypassReason::OldAck,
            None => {
                self.memory.remember(flow, said);
                BypassReason::FirstAck
            }
        };
        self.deliver_untouched(slot, at, reason);
        false
    }

    /// Whether a pure ACK that may follow those held at `place` leaves the last of them something to
    /// say. Of window updates there and back nothing would be left but what was said before them:
    /// where the last speaks for all, that would be a duplicate that nobody sent.
    fn goes_on(&self, place: u16, said: AckPoint) -> bool {
        let held = &self.store.acks[usize::from(place)];
        if self.memory.is_off() || said.advances(held.said) {
            return true;
        }
        let pair = || self.pair(&self.store.held[usize::from(place)].key);
        matches!(self.memory.recall(held.flow, pair), Known::Said(before) if before != said)
    }

    /// Takes note of a segment that is delivered untouched, and none that may be held: so of the next
    /// pure ACK it is in doubt what it repeats. What its receiver drops changes nothing.
    pub(super) fn doubt(&mut self, frame: &Frame<B>, parsed: &Parsed, tcp: &TcpSegment) {
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

    /// Takes note of the data that is now held at `place`, `last` being the last segment of it.
    #[inline(always)]
    pub(super) fn note_data(&mut self, flow: FlowHash, place: u16, last: &Frame<B>) {
        if !self.memory.is_off() {
            let acks = &mut self.store.acks[usize::from(place)];
            (acks.flow, acks.says_more) = (flow, true);
            self.note_more_data(place, last);
        }
    }

    /// The same of data that was held before.
    #[inline(always)]
    pub(super) fn note_more_data(&mut self, place: u16, last: &Frame<B>) {
        if self.memory.is_off() {
            return;
        }
        let transport = usize::from(self.store.held[usize::from(place)].at.transport());
        if let Some(number) = last.bytes().get(transport + 8..).and_then(<[u8]>::first_chunk) {
            self.store.acks[usize::from(place)].said.ack = SeqNumber(u32::from_be_bytes(*number));
        }
    }

    /// Holds the first pure ACK of a flow, and says where.
    #[inline(always)]
    fn hold_ack(
        &mut self,
        first: First,
        flow: FlowHash,
        (said, has_blocks): (AckPoint, bool),
        now: Instant,
    ) -> u16 {
        let place = self.start(first, flow, now);
        self.store.acks[usize::from(place)] = HeldAcks { flow, said, says_more: has_blocks };
        place
    }

    #[inline(always)]
    fn append_ack(
        &mut self,
        place: u16,
        slot: u32,
        (said, has_blocks): (AckPoint, bool),
        now: Instant,
    ) {
        let held = &mut self.store.held[usize::from(place)];
        let tail = held.append_ack(slot);
        let is_full = held.segments >= self.ack_limit;
        let acks = &mut self.store.acks[usize::from(place)];
        (acks.said, acks.says_more) = (said, has_blocks);
        self.store.links.append(tail, slot, place);
        if is_full {
            self.flush_held(place, FlushReason::AckLimit, now);
        }
    }
}
