//! The *Plain* tier: ordinary segments, and packets refused by themselves, read from fixed offsets.
//!
//! An ordinary segment starts something here, or ends what its flow holds by not continuing it. Where one
//! might be appended that is not the expected one, or where options, flags or the policy ask for more, the
//! rules decide: then each function here returns `None` and has changed nothing but what the rules would
//! flush as well.

use rxo_frame::{Frame, LinkKind};
use rxo_wire::{
    ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowHash, PROTOCOL_TCP, Plain, checksum,
    ethertype,
};

use super::apply::flow_key;
use super::batch::Batch;
use super::{Engine, most_payload};
use crate::expected::{Shape, V4, V6};
use crate::held::Segment;
use crate::refused::{Refused, flow, refused};
use crate::single::Starts;
use crate::{BypassReason, FlushReason, Kind, Verdict};

impl<B: AsRef<[u8]>> Engine<B> {
    /// Takes a segment with payload of a flow of which nothing is held.
    #[inline(always)]
    pub(super) fn take_first<S: Shape, const ACKS: bool>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
        flow: FlowHash,
    ) -> Option<u32> {
        let plain = self.plain_data::<S>(batch.get(slot)?, network)?;
        self.start_plain::<S>(batch, slot, (&plain, network), (Verdict::Start(None), None), flow)
    }

    /// Takes a segment with payload that does not continue what was guessed by its hash: it may be out of
    /// sequence, or the guess was wrong. A call, so that the others spare no registers for it, and cold, so
    /// that they stand together.
    #[cold]
    #[inline(never)]
    pub(super) fn take_other<S: Shape, const ACKS: bool>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
        flow: FlowHash,
    ) -> Option<u32> {
        let frame = batch.get(slot)?;
        let key = flow_key(S::key(frame.bytes().get(network..)?)?, frame);
        let found = self.table.find(&self.store.held, &key, flow);
        let Some(place) = found else {
            return self.take_first::<S, ACKS>(batch, slot, network, flow);
        };
        let held = &self.store.held[usize::from(place)];
        if batch.has_at(slot, network + S::IP_BYTES, held.next_seq) {
            let is_guess = found == self.table.guess(flow);
            return if is_guess { None } else { self.take_next::<S>(batch, place, slot, network) };
        }
        // No data joins pure ACKs, and of the rules between data this is the first.
        let reason = match ACKS && held.kind() == Kind::PureAck {
            true => FlushReason::Order,
            false => FlushReason::OutOfSequence,
        };
        let plain = self.plain_data::<S>(frame, network)?;
        let verdict = Verdict::FlushThenStart(reason, None);
        self.start_plain::<S>(batch, slot, (&plain, network), (verdict, found), flow)
    }

    /// Holds a plain segment by a verdict that starts with it, and takes those after it that continue it.
    /// Returns the slot after the last.
    #[inline(always)]
    fn start_plain<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        (plain, network): (&Plain, usize),
        (verdict, found): (Verdict, Option<u16>),
        flow: FlowHash,
    ) -> Option<u32> {
        let frame = batch.frame(slot);
        let key = flow_key(plain.key, frame);
        let segment = Segment::plain::<S, B>((plain, network), (key, flow), frame, slot)?;
        let place = self.apply(verdict, found, &segment)?;
        let next_seq = segment.seq + segment.payload_bytes;
        let goes_on = batch.has_at(slot + 1, network + S::IP_BYTES, next_seq);
        Some(self.run_if::<S>(goes_on, batch, place, slot + 1))
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
        if !self.is_trusted(frame) && !self.is_sum_right::<S>(plain, packet) {
            return None;
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
    pub(super) fn take_ack_alone<S: Shape>(
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
            self.flush_flow(&flow_key(plain.key, frame));
        }
        let at = Starts::after(network, S::IP_BYTES);
        self.deliver_untouched(slot, at, BypassReason::PureAck);
        Some(slot + 1)
    }

    /// Takes a plain pure ACK where the policy aggregates them, if its flow holds none.
    #[inline(always)]
    pub(super) fn take_first_ack<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let frame = batch.get(slot)?;
        let packet = frame.bytes().get(network..)?;
        let plain = S::plain(packet)?;
        if plain.payload_bytes != 0 || frame.gso.is_some() {
            return None;
        }
        if !S::is_checksum_right(packet) || S::may_be_marked_ce(packet) {
            return None;
        }
        if !self.is_trusted(frame) && !self.is_sum_right::<S>(plain, packet) {
            return None;
        }
        let key = flow_key(plain.key, frame);
        let flow = self.hasher.hash(&key);
        if self.find_alike(&key, flow, Kind::PureAck).is_some() {
            return None;
        }
        let segment = Segment::plain::<S, B>((&plain, network), (key, flow), frame, slot)?;
        if let Some(place) = self.apply(self.ack_alone(&segment), None, &segment) {
            self.recent.note::<S>(packet, place);
        }
        Some(slot + 1)
    }

    /// Whether the TCP checksum of a plain segment is right. Reads its payload.
    #[inline(always)]
    fn is_sum_right<S: Shape>(&self, plain: Plain, packet: &[u8]) -> bool {
        // By value, so that what was read need not be in memory.
        let end = (plain.header_bytes + plain.payload_bytes) as usize;
        let segment = packet.get(S::IP_BYTES..end).unwrap_or_default();
        let pseudo_header = checksum::pseudo_header(&plain.key, PROTOCOL_TCP, segment.len() as u32);
        (self.config.summer.sum(segment) + pseudo_header).is_valid()
    }

    /// Takes a frame that is not plain: delivers it if its fixed offsets show that it is refused, and
    /// leaves it to the full rules otherwise. Returns the slot after the last frame taken.
    ///
    /// A cold call, so that the loop over plain frames spares no registers for it.
    #[cold]
    #[inline(never)]
    pub(super) fn take_odd(&mut self, batch: Batch<'_, B>, slot: u32) -> u32 {
        match self.refuse(batch.frame(slot), slot) {
            Some(()) => slot + 1,
            None => self.take_by_rules(batch, slot),
        }
    }

    /// Delivers the frame in `slot` if it is refused by itself. `None` if only the full rules can tell.
    #[inline(always)]
    fn refuse(&mut self, frame: &Frame<B>, slot: u32) -> Option<()> {
        // What is remembered of a flow changes with segments that are refused.
        if !self.memory.is_off() {
            return None;
        }
        let bytes = frame.bytes();
        match self.config.link {
            LinkKind::Ethernet => match ethertype(bytes)? {
                ETHERTYPE_IPV4 => self.refuse_at::<V4>(frame, slot, ETHERNET_HEADER_BYTES),
                ETHERTYPE_IPV6 => self.refuse_at::<V6>(frame, slot, ETHERNET_HEADER_BYTES),
                _ => None,
            },
            LinkKind::RawIp => match bytes.first()? >> 4 {
                4 => self.refuse_at::<V4>(frame, slot, 0),
                6 => self.refuse_at::<V6>(frame, slot, 0),
                _ => None,
            },
        }
    }

    #[inline(always)]
    fn refuse_at<S: Shape>(&mut self, frame: &Frame<B>, slot: u32, network: usize) -> Option<()> {
        let packet = frame.bytes().get(network..)?;
        let Refused { reason, ip_bytes } = refused::<S>(packet, &self.config.policy)?;
        if !self.table.is_empty() {
            self.make_way(reason, &flow_key(flow::<S>(packet), frame), slot);
        }
        self.deliver_untouched(slot, Starts::after(network, ip_bytes), reason);
        Some(())
    }
}
