//! The *Plain* tier: ordinary segments, and packets refused by themselves, read from fixed offsets.
//!
//! A plain segment starts something here, or ends what its flow holds by not continuing it. Any other
//! ordinary segment, with PSH or with less payload than the last, gets its verdict from the rules, but on
//! headers read from fixed offsets. Where options, flags or the policy ask for more, each function here
//! returns `None` and has changed nothing but what the rules would flush as well.

use rxo_frame::{ChecksumStatus, Frame, FrameBuffer, LinkKind};
use rxo_wire::tcp::CHECKSUM_AT;
use rxo_wire::{
    ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowHash, FlowKey, PROTOCOL_TCP, Plain,
    checksum, ethertype,
};

use super::apply::flow_key;
use super::batch::Batch;
use super::in_turn::plain_ack;
use super::rules::is_described_oddly;
use super::{Engine, most_payload};
use crate::candidate::with_payload;
use crate::datagrams::DatagramShape;
use crate::expected::{Shape, V4, V6, by_ip_version};
use crate::held::Segment;
use crate::refused::{Shown, flow, shown};
use crate::single::Starts;
use crate::{BypassReason, Candidate, FlushReason, Kind, Verdict};

/// Where the echo of a plain segment's timestamp stands in its TCP header, in bytes; its last four.
const ECHO_AT: usize = 28;

impl<B: FrameBuffer> Engine<B> {
    /// Takes a data segment. Its flow holds nothing yet.
    #[inline(always)]
    pub(super) fn take_first<S: Shape>(
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
    pub(super) fn take_other<S: Shape>(
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
            self.thin_bucket(flow);
            return self.take_first::<S>(batch, slot, network, flow);
        };
        let held = &self.store.held[usize::from(place)];
        if batch.has_at(slot, network + S::IP_BYTES, held.next_seq) {
            let is_guess = found == self.table.guess(flow);
            return if is_guess { None } else { self.take_next::<S>(batch, place, slot, network) };
        }
        // Data joins nothing but data, and of the rules between data this is the first.
        let reason = match held.kind() {
            Kind::Data => FlushReason::OutOfSequence,
            _ => FlushReason::Order,
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
        let may_start = (1..=self.plain_payload_bytes).contains(&plain.payload_bytes)
            || self.breaks_no_rule::<S>(plain, packet);
        if !may_start || frame.gso.is_some() || S::may_be_marked_ce(packet) {
            return None;
        }
        if !S::is_checksum_right(packet) {
            return None;
        }
        if !self.is_plainly_right::<S>(frame, plain, packet) {
            return None;
        }
        Some(plain)
    }

    /// Whether a plain segment breaks no rule of a policy that some plain ones break: for want of DF, or of an
    /// echo in its timestamp.
    #[inline(never)]
    fn breaks_no_rule<S: Shape>(&self, plain: Plain, packet: &[u8]) -> bool {
        let policy = &self.config.policy;
        let echo = packet.get(S::IP_BYTES + ECHO_AT..plain.header_bytes as usize);
        policy.refuses_plain()
            && (1..=most_payload(policy)).contains(&plain.payload_bytes)
            && (!policy.needs_df || S::ip(packet).is_some_and(|ip| ip.dont_fragment))
            && (policy.zero_echo || echo.is_none_or(|echo| echo != [0; 4]))
    }

    /// Takes a plain pure ACK where the policy aggregates none: it is delivered after what its flow
    /// holds. Then takes frames behind it by [`Engine::take_in_turn`]. Returns the slot after the last.
    #[inline(always)]
    pub(super) fn take_ack_alone<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let frame = batch.get(slot)?;
        let plain = plain_ack::<S, B>(frame, network)?;
        let at = Starts::after(network, S::IP_BYTES);
        if self.table.is_empty() {
            self.deliver_untouched(slot, at, BypassReason::PureAck);
            return Some(slot + 1);
        }
        self.flush_flow(&flow_key(plain.key, frame));
        self.deliver_untouched(slot, at, BypassReason::PureAck);
        Some(self.take_in_turn::<S>(batch, slot, network))
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
        if !self.is_plainly_right::<S>(frame, plain, packet) {
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

    /// Whether the checksum of a plain segment is right, or trusted. A partial one is left to the tiers after this:
    /// to compare where it is takes instructions of every segment, and few frames here have one.
    #[inline(always)]
    fn is_plainly_right<S: Shape>(&self, frame: &Frame<B>, plain: Plain, packet: &[u8]) -> bool {
        frame.checksum == ChecksumStatus::Verified
            || !frame.checksum.is_partial()
                && (self.config.trust_checksums || self.is_sum_right::<S>(plain, packet))
    }

    /// Whether the TCP checksum of a segment is right, whose IP header has neither options nor extension
    /// headers. Reads its payload.
    #[inline(always)]
    fn is_sum_right<S: Shape>(&self, plain: Plain, packet: &[u8]) -> bool {
        // By value, so that what was read need not be in memory.
        let end = (plain.header_bytes + plain.payload_bytes) as usize;
        let segment = packet.get(S::IP_BYTES..end).unwrap_or_default();
        let pseudo_header = checksum::pseudo_header(&plain.key, PROTOCOL_TCP, segment.len() as u32);
        (self.config.summer.sum(segment) + pseudo_header).is_valid()
    }

    /// Takes a frame that the tiers before left: an ordinary segment by its fixed offsets, a packet that is
    /// refused by itself likewise, and any other by the rules. Returns the slot after the last frame taken.
    ///
    /// A cold call, so that the loop over plain frames spares no registers for it.
    #[cold]
    #[inline(never)]
    pub(super) fn take_odd(&mut self, batch: Batch<'_, B>, slot: u32) -> u32 {
        self.take_odd_ip(batch, slot).unwrap_or_else(|| self.take_by_rules(batch, slot))
    }

    #[inline(always)]
    fn take_odd_ip(&mut self, batch: Batch<'_, B>, slot: u32) -> Option<u32> {
        let bytes = batch.frame(slot).bytes();
        by_ip_version!((self.config.link, bytes), S, network => {
            self.take_odd_at::<S>(batch, slot, network)
        })
    }

    /// Takes an ordinary segment, or a refused packet, whose IP header begins at `network`.
    #[inline(always)]
    fn take_odd_at<S: DatagramShape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let frame = batch.frame(slot);
        let packet = frame.bytes().get(network..)?;
        if self.takes_datagrams
            && let Some(after) = self.take_datagram::<S>(batch, slot, network)
        {
            return Some(after);
        }
        match shown::<S>(packet, &self.config.policy) {
            Shown::Ordinary => self.take_ordinary::<S>(batch, slot, network),
            // What is remembered of a flow changes with segments that are refused.
            Shown::Refused { reason, ip_bytes } if self.memory.is_off() => {
                if !self.table.is_empty() {
                    self.make_way(reason, &flow_key(flow::<S>(packet), frame), slot);
                }
                self.deliver_untouched(slot, Starts::after(network, ip_bytes), reason);
                Some(slot + 1)
            }
            Shown::Refused { .. } | Shown::Nothing => None,
        }
    }

    /// Takes an ordinary segment that is neither plain nor expected: one with PSH, with less payload than
    /// those before it, or with other values in its headers. A short one may be expected yet.
    #[inline(never)]
    fn take_ordinary<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        if let Some(after) = self.take_short::<S>(batch, slot, network) {
            return Some(after);
        }
        let frame = batch.frame(slot);
        let (candidate, key) = self.ordinary::<S>(frame, network)?;
        let hash = self.hasher.hash(&key);
        let found = self.find_alike(&key, hash, Kind::Data);
        let last = match found {
            Some(place) => Some(self.last_ordinary::<S>(batch, place, network)?),
            None => None,
        };
        let segment = Segment::of(&candidate, (key, hash), frame, slot);
        let place = self.judge_and_apply((&candidate, segment), found, last.as_ref());
        Some(place.map_or(slot + 1, |place| self.run::<S>(batch, place, slot)))
    }

    /// Reads an ordinary segment that can be held, and its flow.
    #[inline(always)]
    pub(super) fn ordinary<'f, S: Shape>(
        &self,
        frame: &'f Frame<B>,
        network: usize,
    ) -> Option<(Candidate<'f>, FlowKey)> {
        let packet = frame.bytes().get(network..)?;
        let candidate = Candidate::ordinary::<S, B>(frame, network)?;
        let Candidate { ip, tcp, at, .. } = &candidate;
        let plain = Plain {
            key: flow_key(flow::<S>(packet), frame),
            seq: tcp.seq,
            header_bytes: at.payload - at.network,
            payload_bytes: at.payload_bytes(),
        };
        let is_refused = is_described_oddly(frame, network + S::IP_BYTES, CHECKSUM_AT)
            || with_payload((ip, tcp, *at), &self.config.policy).is_err();
        if is_refused || !(self.is_trusted(frame) || self.is_sum_right::<S>(plain, packet)) {
            return None;
        }
        Some((candidate, plain.key))
    }

    /// The last segment that is held at `place`, if its headers are as those of an ordinary segment.
    #[inline(always)]
    fn last_ordinary<'a, S: Shape>(
        &self,
        batch: Batch<'a, B>,
        place: u16,
        network: usize,
    ) -> Option<Candidate<'a>> {
        let held = &self.store.held[usize::from(place)];
        let is_ordinary = held.at == Starts::after(network, S::IP_BYTES);
        let frame = batch.frame(held.chain.tail);
        if is_ordinary { Candidate::ordinary::<S, B>(frame, network) } else { None }
    }
}
