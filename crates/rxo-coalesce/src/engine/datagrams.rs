//! UDP datagrams, by the tiers that segments have: what is expected, what fixed offsets show, all rules.
//!
//! Separate from the tiers of TCP, so that these carry nothing of it: a datagram comes here when they have left it,
//! and brings those that continue it along.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::{FlowKey, PROTOCOL_UDP, arch, checksum};

use super::Engine;
use super::apply::flow_key;
use super::batch::Batch;
use super::expected::Verification;
use super::rules::is_described_oddly;
use super::take::{HEADER_FRAMES, PAYLOAD_FRAMES, prefetch_header};
use crate::datagrams::{
    CHECKSUM_AT, DatagramShape, ExpectedDatagram, plain_datagram, with_datagram,
};
use crate::held::Segment;
use crate::{Candidate, FlushReason, Kind, Verdict, verdict};

impl<B: FrameBuffer> Engine<B> {
    /// Takes the datagram in `slot`, whose IP header begins at `network`, and those after it that continue it.
    /// Returns the slot after the last. `None` if it is no ordinary datagram: the rules then say what it is.
    #[inline(never)]
    pub(super) fn take_datagram<S: DatagramShape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let frame = batch.get(slot)?;
        let key = flow_key(S::datagram_key(frame.bytes().get(network..)?)?, frame);
        let flow = self.hasher.hash(&key);
        // Most datagrams continue what their flow holds. The compare tells whether the guess was right.
        if let Some(place) = self.table.guess(flow)
            && let after @ 1.. = self.run_of_datagrams::<S>(batch, place, slot, network) - slot
        {
            return Some(slot + after);
        }
        let (candidate, udp) = plain_datagram::<S, B>(frame, network)?;
        let policy = &self.config.policy;
        let transport = candidate.at.transport as usize;
        let is_refused = is_described_oddly(frame, transport, CHECKSUM_AT)
            || with_datagram(key.destination_port(), &udp, candidate.at, policy).is_err();
        if is_refused || !(self.is_trusted(frame) || self.is_datagram_right(&key, &candidate)) {
            return None;
        }
        let found = self.find_alike(&key, flow, Kind::Datagrams);
        let last = match found {
            Some(place) => Some(self.last_datagram::<S>(batch, place, network)?),
            None => None,
        };
        let segment = Segment::of(&candidate, (key, flow), frame, slot);
        let place = self.apply_datagram((&candidate, segment), found, last.as_ref());
        let run = |place| self.run_of_datagrams::<S>(batch, place, slot + 1, network);
        Some(place.map_or(slot + 1, run))
    }

    /// Whether the checksum of a datagram of the flow `key` is right. Reads its payload.
    fn is_datagram_right(&self, key: &FlowKey, candidate: &Candidate<'_>) -> bool {
        let bytes = candidate.bytes.get(candidate.at.segment()).unwrap_or_default();
        let pseudo_header = checksum::pseudo_header(key, PROTOCOL_UDP, bytes.len() as u32);
        (self.config.summer.sum(bytes) + pseudo_header).is_valid()
    }

    /// The last datagram that is held at `place`, if its headers are where those of an ordinary one are.
    #[inline(always)]
    fn last_datagram<'a, S: DatagramShape>(
        &self,
        batch: Batch<'a, B>,
        place: u16,
        network: usize,
    ) -> Option<Candidate<'a>> {
        let held = &self.store.held[usize::from(place)];
        let is_plain = usize::from(held.at.network()) == network;
        let frame = batch.frame(held.chain.tail);
        if is_plain { Some(plain_datagram::<S, B>(frame, network)?.0) } else { None }
    }

    /// Judges a datagram whose flow holds datagrams at `found`, `last` being the last of them, counts it and acts.
    /// Returns where it is held, if it is.
    pub(super) fn apply_datagram(
        &mut self,
        (candidate, mut segment): (&Candidate<'_>, Segment),
        found: Option<u16>,
        last: Option<&Candidate<'_>>,
    ) -> Option<u16> {
        segment.id_step = last.map_or(0, |last| candidate.ip.id.wrapping_sub(last.ip.id));
        let held = found.map(|place| &self.store.held[usize::from(place)]);
        let verdict = verdict(held.zip(last), candidate, &self.config.policy);
        self.counters.datagrams += 1;
        if !matches!(verdict, Verdict::Append(_)) {
            self.counters.datagram_deliveries += 1;
        }
        self.apply(verdict, found, &segment)
    }

    /// Appends the datagrams from `slot` on, whose IP headers begin at `network`, that continue what is held at
    /// `place`. Returns the slot after the last; `slot` if none does, or no datagrams are held there.
    #[inline(never)]
    pub(super) fn run_of_datagrams<S: DatagramShape>(
        &mut self,
        batch: Batch<'_, B>,
        place: u16,
        slot: u32,
        network: usize,
    ) -> u32 {
        let Some((count, id_step)) = self.count_datagrams::<S>(batch, place, slot, network) else {
            return slot;
        };
        self.counters.datagrams += u64::from(count);
        let held = &mut self.store.held[usize::from(place)];
        held.append_run(count, id_step);
        let is_full = held.segments >= self.config.policy.most_datagrams();
        let close = is_full.then_some(FlushReason::SegmentLimit);
        self.append(place, slot, count, close);
        slot + count
    }

    /// How many frames from `slot` on continue the datagrams at `place`, at least one, and how much their IPv4 IDs
    /// count.
    #[inline(always)]
    fn count_datagrams<S: DatagramShape>(
        &self,
        batch: Batch<'_, B>,
        place: u16,
        slot: u32,
        network: usize,
    ) -> Option<(u32, u16)> {
        let held = self.store.held.get(usize::from(place))?;
        let (last, frames) = (batch.frame(held.chain.tail), batch.upcoming(slot));
        let next = frames.first()?.bytes();
        let mut expected = ExpectedDatagram::<S>::after::<B>(held, last, next, network)?;
        let policy = &self.config.policy;
        // The frame before `slot` may be taken but not yet counted.
        let most = (self.packets_left - 1).min(expected.steps).min(frames.len() as u32);
        let most = policy.room(held, most.min(policy.most_datagrams() - held.segments));
        let verification = (!self.is_trusted(last)).then(|| Verification::of_datagrams(held));
        let mut rest = frames.get(..most as usize).unwrap_or(frames);
        let all = rest.len();
        while let [frame, after @ ..] = rest
            && expected.is_met_by(frame)
            && verification.is_none_or(|sum| {
                after.get(PAYLOAD_FRAMES as usize - 1).into_iter().for_each(prefetch_payload);
                sum.holds(frame, self.config.summer)
            })
        {
            after.get(HEADER_FRAMES as usize - 1).into_iter().for_each(prefetch_header);
            expected.advance();
            rest = after;
        }
        let count = (all - rest.len()) as u32;
        (count != 0).then_some((count, expected.step))
    }
}

/// Asks for all of a frame whose checksum will have to be summed.
#[inline(always)]
fn prefetch_payload<B: AsRef<[u8]>>(frame: &Frame<B>) {
    arch::prefetch_all(frame.bytes());
}
