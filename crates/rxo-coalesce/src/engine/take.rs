//! Taking a batch, and the short way of its frames.
//!
//! The hash of a frame's flow says what it may continue, and one compare whether it does; if it
//! continues what was appended to last, the compare alone (`run`). If nothing is held under that hash
//! and the frame is plain, it is held. Everything else takes the full way.
//!
//! The short way exists once for each version of IP, chosen before anything else is read: what
//! is known at compile time need not be kept, and neither version pays for the other. It exists once
//! more for policies that aggregate pure ACKs (`ACKS`), so that the others do not pay for that, and for
//! those that coalesce no data (`DATA` is false), so that none is looked for.

use alloc::vec::Vec;

use rxo_frame::{Frame, Instant, LinkKind};
use rxo_wire::{
    ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowHash, PROTOCOL_TCP, Plain, arch,
    checksum, ethertype,
};

use super::apply::flow_key;
use super::batch::Batch;
use super::{Engine, most_payload, packet_window};
use crate::expected::{Shape, V4, V6};
use crate::held::First;
use crate::single::Starts;
use crate::{BypassReason, Deliveries, FlushReason, Kind};

/// Headers are asked for this many frames ahead: enough to hide a miss, few enough for the processor's
/// queue of outstanding lines.
pub(super) const HEADER_FRAMES: u32 = 8;
/// Payloads, where they will be summed, are asked for this many frames ahead.
pub(super) const PAYLOAD_FRAMES: u32 = 2;
/// A header of 66 bytes (Ethernet, IPv4, TCP with timestamp) spans two lines wherever it starts.
const SECOND_LINE: usize = 64;
/// The longest TCP header that is plain.
pub(super) const MOST_TCP_BYTES: usize = 32;

impl<B: AsRef<[u8]>> Engine<B> {
    /// Takes all frames out of `batch`, delivering in between when there is no room.
    pub(super) fn take(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        sink: &mut impl FnMut(Deliveries<'_, B>),
    ) {
        self.now = now;
        self.counters.frames += batch.len() as u64;
        if batch.len() <= self.store.room() {
            let from = self.store.take_in(batch);
            self.take_from(from);
        } else {
            self.take_in_rounds(batch, now, sink);
        }
    }

    /// Takes a batch for which there is no room at once. Each frame is moved once, however many rounds
    /// there are.
    #[cold]
    fn take_in_rounds(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        sink: &mut impl FnMut(Deliveries<'_, B>),
    ) {
        let mut frames = batch.drain(..);
        while frames.len() != 0 {
            if self.store.room() == 0 {
                self.make_room(now, sink);
            } else {
                let from = self.store.take_some_in(&mut frames);
                self.take_from(from);
            }
        }
    }

    /// Takes the frames of the store from the slot `from` on.
    #[inline(always)]
    fn take_from(&mut self, from: u32) {
        let frames = self.store.lend_frames();
        let batch = Batch::new(&frames);
        match (self.ack_limit >= 2, most_payload(&self.config.policy) != 0) {
            (false, true) => self.take_all::<false, true>(batch, from),
            (true, true) => self.take_all::<true, true>(batch, from),
            (false, false) => self.take_all::<false, false>(batch, from),
            (true, false) => self.take_all::<true, false>(batch, from),
        }
        self.store.take_back(frames);
    }

    /// Every slot is in use: what is ready goes to the sink; if nothing is, the least recently
    /// used flow is flushed first.
    #[cold]
    fn make_room(&mut self, now: Instant, sink: &mut impl FnMut(Deliveries<'_, B>)) {
        if self.store.ready.is_empty()
            && let Some(oldest) = self.store.links.oldest()
        {
            self.flush_held(oldest, FlushReason::Memory, now);
        }
        self.deliver_between(sink);
    }

    /// Takes the frames from the slot `from` on. Whoever takes a frame asks for the header of one
    /// further on.
    fn take_all<const ACKS: bool, const DATA: bool>(&mut self, batch: Batch<'_, B>, from: u32) {
        let sums = !self.config.trust_checksums;
        let soon = batch.upcoming(from).iter().take(HEADER_FRAMES as usize);
        soon.for_each(prefetch_header);
        let mut slot = from;
        while let Some(frame) = batch.get(slot) {
            batch.get(slot + HEADER_FRAMES).into_iter().for_each(prefetch_header);
            if sums && let Some(frame) = batch.get(slot + PAYLOAD_FRAMES) {
                prefetch_payload(frame);
            }
            let after = self.take_one::<ACKS, DATA>(batch, slot, frame);
            self.packets_left = self.packets_left.wrapping_sub(after - slot);
            if self.packets_left == 0 {
                self.packets_left = packet_window(self.config.policy.hold);
                self.flush_all(after, FlushReason::PacketLimit, self.now);
            }
            slot = after;
        }
    }

    /// Takes the frame in `slot` and those after it that continue it. Returns the slot after the
    /// last.
    #[inline(always)]
    fn take_one<const ACKS: bool, const DATA: bool>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        frame: &Frame<B>,
    ) -> u32 {
        let taken = match self.config.link {
            LinkKind::Ethernet => match ethertype(frame.bytes()) {
                Some(ETHERTYPE_IPV4) => {
                    self.take_plain::<V4, ACKS, DATA>(batch, slot, ETHERNET_HEADER_BYTES)
                }
                Some(ETHERTYPE_IPV6) => {
                    self.take_plain::<V6, ACKS, DATA>(batch, slot, ETHERNET_HEADER_BYTES)
                }
                _ => None,
            },
            LinkKind::RawIp => self.take_plain_ip::<ACKS, DATA>(batch, slot),
        };
        match taken {
            Some(after) => after,
            // Where no data is coalesced most frames come here, and few of them are refused.
            None if DATA => self.take_odd(batch, slot),
            None => self.take_any(batch, slot),
        }
    }

    #[inline(never)]
    fn take_plain_ip<const ACKS: bool, const DATA: bool>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
    ) -> Option<u32> {
        match batch.get(slot)?.bytes().first()? >> 4 {
            4 => self.take_plain::<V4, ACKS, DATA>(batch, slot, 0),
            6 => self.take_plain::<V6, ACKS, DATA>(batch, slot, 0),
            _ => None,
        }
    }

    /// Takes the short way with a frame whose IP header begins at `network`, if it is plain and
    /// needs none of the rules that only the full way knows.
    #[inline(always)]
    fn take_plain<S: Shape, const ACKS: bool, const DATA: bool>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let packet = batch.get(slot)?.bytes().get(network..)?;
        if packet.len() > S::IP_BYTES + MOST_TCP_BYTES {
            return match DATA {
                true => self.take_data::<S, ACKS>(batch, slot, network),
                false => None,
            };
        }
        match ACKS {
            true => self.take_ack_where_held::<S>(batch, slot, network),
            false => self.take_plain_ack::<S>(batch, slot, network),
        }
    }

    /// The same for a frame that is longer than a pure ACK.
    ///
    /// Most frames continue what their flow holds. So before such a frame is read it is compared with
    /// what that would be: the hash of its flow says where to look.
    #[inline(always)]
    fn take_data<S: Shape, const ACKS: bool>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let frame = batch.get(slot)?;
        let packet = frame.bytes().get(network..)?;
        let key = flow_key(S::key(packet)?, frame);
        let hash = self.hasher.hash(&key);
        let Some(place) = self.table.guess(hash) else {
            return self.take_first::<S, ACKS>(batch, slot, network, hash);
        };
        match self.take_next::<S>(batch, place, slot, network) {
            Some(after) => Some(after),
            None => self.take_other::<S, ACKS>(batch, slot, network, hash),
        }
    }

    /// Takes a frame that does not continue what was guessed by its hash: it may be out of sequence, or
    /// the guess was wrong. A call, so that the others spare no registers for it, and cold, so that they
    /// stand together.
    #[cold]
    #[inline(never)]
    fn take_other<S: Shape, const ACKS: bool>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
        hash: FlowHash,
    ) -> Option<u32> {
        let frame = batch.get(slot)?;
        let key = flow_key(S::key(frame.bytes().get(network..)?)?, frame);
        let found = self.table.find(&self.store.held, &key, hash);
        if let Some(place) = found
            && batch.has_at(
                slot,
                network + S::IP_BYTES,
                self.store.held[usize::from(place)].next_seq,
            )
        {
            let is_guess = found == self.table.guess(hash);
            return if is_guess { None } else { self.take_next::<S>(batch, place, slot, network) };
        }
        let plain = self.plain_data::<S>(frame, network)?;
        if let Some(place) = found {
            // No data joins pure ACKs, and of the rules between data this is the first.
            let held = &self.store.held[usize::from(place)];
            let reason = match ACKS && held.kind() == Kind::PureAck {
                true => FlushReason::Order,
                false => FlushReason::OutOfSequence,
            };
            self.flush_held(place, reason, self.now);
        }
        Some(self.hold_plain::<S, ACKS>(batch, slot, (&plain, network), hash))
    }

    /// Takes a frame of a flow of which nothing is held.
    #[inline(always)]
    fn take_first<S: Shape, const ACKS: bool>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
        hash: FlowHash,
    ) -> Option<u32> {
        let plain = self.plain_data::<S>(batch.get(slot)?, network)?;
        Some(self.hold_plain::<S, ACKS>(batch, slot, (&plain, network), hash))
    }

    /// Holds a plain segment, the first of its flow, and those after it that continue it. Returns the
    /// slot after the last.
    #[inline(always)]
    fn hold_plain<S: Shape, const ACKS: bool>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        (plain, network): (&Plain, usize),
        hash: FlowHash,
    ) -> u32 {
        let frame = batch.frame(slot);
        let first = First::plain::<S, B>((plain, network), flow_key(plain.key, frame), frame, slot);
        let place = self.start(first, hash, self.now);
        if ACKS {
            self.note_data(hash, place, frame);
        }
        let next_seq = plain.seq + plain.payload_bytes;
        let goes_on = batch.has_at(slot + 1, network + S::IP_BYTES, next_seq);
        self.run_if::<S>(goes_on, batch, place, slot + 1)
    }

    /// Reads a plain segment with payload that can be held: both checksums are right.
    #[inline(always)]
    fn plain_data<S: Shape>(&self, frame: &Frame<B>, network: usize) -> Option<Plain> {
        let packet = frame.bytes().get(network..)?;
        let plain = S::plain(packet)?;
        if plain.payload_bytes == 0 || frame.gso.is_some() || S::may_be_marked_ce(packet) {
            return None;
        }
        if !S::is_checksum_right(packet) {
            return None;
        }
        let Plain { header_bytes, payload_bytes, .. } = plain;
        let is_short = payload_bytes <= self.short_payload_bytes;
        if !is_short && !self.may_start::<S>(packet, header_bytes, payload_bytes) {
            return None;
        }
        if !self.is_trusted(frame) {
            // A copy, so that what was read need not be in memory.
            let escaping = plain;
            if !self.is_sum_right::<S>(&escaping, packet) {
                return None;
            }
        }
        Some(plain)
    }

    /// Whether a plain segment breaks none of the rules that only some policies have, and no limit: those
    /// policies ask for every segment, since for them no payload is short.
    #[inline(never)]
    fn may_start<S: Shape>(&self, packet: &[u8], header_bytes: u32, payload_bytes: u32) -> bool {
        let policy = &self.config.policy;
        let echo = packet.get(S::IP_BYTES + 28..header_bytes as usize);
        let breaks_df = policy.needs_df && !S::has_dont_fragment(packet);
        let breaks_echo = !policy.zero_echo && echo == Some(&[0; 4]);
        !breaks_df && !breaks_echo && payload_bytes <= most_payload(policy)
    }

    /// Takes a plain pure ACK where the policy aggregates none: it is delivered after what its flow
    /// holds.
    #[inline(always)]
    fn take_plain_ack<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let frame = batch.get(slot)?;
        let packet = frame.bytes().get(network..)?;
        let plain = S::plain(packet)?;
        if plain.payload_bytes != 0 || frame.gso.is_some() || !S::is_checksum_right(packet) {
            return None;
        }
        if !self.table.is_empty() {
            self.flush_flow(&flow_key(plain.key, frame), self.now);
        }
        let at = Starts::after(network, S::IP_BYTES);
        self.deliver_untouched(slot, at, BypassReason::PureAck);
        Some(slot + 1)
    }

    /// The same where it aggregates them.
    #[inline(always)]
    fn take_ack_where_held<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        if let Some(after) = self.take_next_ack::<S>(batch, slot, network) {
            return Some(after);
        }
        let frame = batch.get(slot)?;
        let plain = S::plain(frame.bytes().get(network..)?)?;
        if plain.payload_bytes != 0 || frame.gso.is_some() {
            return None;
        }
        self.take_first_ack::<S>(batch, slot, (plain, network))
    }

    /// Whether the TCP checksum of a plain segment is right. Reads its payload.
    #[inline(always)]
    pub(super) fn is_sum_right<S: Shape>(&self, plain: &Plain, packet: &[u8]) -> bool {
        let end = (plain.header_bytes + plain.payload_bytes) as usize;
        let segment = packet.get(S::IP_BYTES..end).unwrap_or_default();
        let pseudo_header = checksum::pseudo_header(&plain.key, PROTOCOL_TCP, segment.len() as u32);
        (self.config.summer.sum(segment) + pseudo_header).is_valid()
    }
}

/// Asks for the header of a frame.
#[inline(always)]
pub(super) fn prefetch_header<B: AsRef<[u8]>>(frame: &Frame<B>) {
    arch::prefetch(frame.bytes(), 0);
    arch::prefetch(frame.bytes(), SECOND_LINE);
}

/// Asks for the payload of a frame whose checksum will have to be summed.
#[inline]
fn prefetch_payload<B: AsRef<[u8]>>(frame: &Frame<B>) {
    if !frame.checksum.is_trusted() {
        arch::prefetch_all(frame.bytes());
    }
}
