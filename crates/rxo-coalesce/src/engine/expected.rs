//! The *Expected* tier: the next segment of what is held, told by one compare.
//!
//! The compare covers nearly every rule, and that the segment is of this flow. So nothing else of it is
//! read, nothing need be looked up, and little is written. Where it fails the tiers after it decide why.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::checksum::{Sum, Summer};
use rxo_wire::{ETHERNET_HEADER_BYTES, PROTOCOL_TCP, PROTOCOL_UDP, SeqNumber, arch};

use super::Engine;
use super::apply::flow_key;
use super::batch::Batch;
use super::take::{HEADER_FRAMES, MOST_TCP_BYTES, PAYLOAD_FRAMES, prefetch_header};
use crate::acks::{Following, follow, follows};
use crate::expected::{Expected, Shape};
use crate::held::Held;
use crate::refused::flow;
use crate::{FlushReason, Kind};

/// Where the IP header most often begins.
const ETHERNET: usize = ETHERNET_HEADER_BYTES;
const RAW_IP: usize = 0;
/// It begins elsewhere.
const ANYWHERE: usize = usize::MAX;

/// The TCP checksum of expected segments, which the compare leaves out.
#[derive(Clone, Copy)]
pub(super) struct Verification {
    pseudo_header: Sum,
    /// Where the segment stands in its frame.
    from: usize,
    to: usize,
}

/// The length of a run.
struct Ran {
    /// How many frames were appended, at least one.
    count: u32,
    id_step: u16,
}

impl<B: FrameBuffer> Engine<B> {
    /// Appends the frames after `slot`, the last one held at `place`, that continue it. Returns the
    /// slot after the last.
    #[inline(always)]
    pub(super) fn run<S: Shape>(&mut self, batch: Batch<'_, B>, place: u16, slot: u32) -> u32 {
        let held = &self.store.held[usize::from(place)];
        let goes_on = batch.has_at(slot + 1, held.at.transport().into(), held.next_seq);
        self.run_if::<S>(goes_on, batch, place, slot + 1)
    }

    /// Appends the frames from `slot` on that continue what is held at `place`, unless the first of them
    /// does not `goes_on`: its sequence number shows that before anything else is read. Returns the slot after
    /// the last.
    #[inline(always)]
    pub(super) fn run_if<S: Shape>(
        &mut self,
        goes_on: bool,
        batch: Batch<'_, B>,
        place: u16,
        slot: u32,
    ) -> u32 {
        if goes_on { self.run_from::<S>(batch, place, slot) } else { slot }
    }

    /// Appends the frame in `slot` to what is held at `place`, if it is what continues that, and those
    /// after it. `None` when it is not. Nothing need be known of the frame: what is held may be of
    /// another flow.
    #[inline(always)]
    pub(super) fn take_next<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        place: u16,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let held = self.store.held.get(usize::from(place))?;
        let id_step = self.next_step::<S>(batch, held, slot, network)?;
        let Some(next_seq) = self.append_ran(place, slot, Ran { count: 1, id_step }) else {
            return Some(slot + 1);
        };
        let goes_on = batch.has_at(slot + 1, network + S::IP_BYTES, next_seq);
        Some(self.run_if::<S>(goes_on, batch, place, slot + 1))
    }

    /// How much the IPv4 ID counts to the frame in `slot`, if that continues `held`.
    #[inline(always)]
    fn next_step<S: Shape>(
        &self,
        batch: Batch<'_, B>,
        held: &Held,
        slot: u32,
        network: usize,
    ) -> Option<u16> {
        // Datagrams have no header that could be expected here.
        if held.kind() == Kind::PureAck {
            return None;
        }
        let (last, next) = (batch.get(held.chain.tail)?, batch.get(slot)?);
        let mut room = S::ZEROS;
        let next_bytes = next.bytes();
        let expected =
            Expected::<S>::after::<B, false>(held, last, next_bytes, network, &mut room)?;
        let is_next = expected.steps() != 0 && expected.is_met_by::<B, false, false>(next);
        if !is_next || !self.config.policy.has_room(held) {
            return None;
        }
        let is_intact =
            self.is_trusted(next) || Verification::of(held).holds(next, self.config.summer);
        is_intact.then_some(expected.id_step())
    }

    /// Appends the frames from `slot` on. Where the IP header most often begins is known when this is
    /// compiled: then nothing has to be kept or added for it.
    #[inline(always)]
    fn run_from<S: Shape>(&mut self, batch: Batch<'_, B>, place: u16, slot: u32) -> u32 {
        let network = usize::from(self.store.held[usize::from(place)].at.network());
        match network {
            ETHERNET => self.run_at::<S, ETHERNET>(batch, place, slot, network),
            RAW_IP => self.run_at::<S, RAW_IP>(batch, place, slot, network),
            _ => self.run_at::<S, ANYWHERE>(batch, place, slot, network),
        }
    }

    #[inline(never)]
    fn run_at<S: Shape, const NETWORK: usize>(
        &mut self,
        batch: Batch<'_, B>,
        place: u16,
        slot: u32,
        network: usize,
    ) -> u32 {
        let network = if NETWORK == ANYWHERE { network } else { NETWORK };
        let Some(ran) = self.run_over::<S, false>(batch, place, slot, network) else {
            return slot;
        };
        let after = slot + ran.count;
        self.append_ran(place, slot, ran);
        after
    }

    /// Appends the segment in `slot` and those after it, if its packet may end before [`Shape::Headers`] and
    /// its flow holds what it continues. `None` if not. Separate from [`Engine::take_next`], because headers
    /// that may be cut short are copied before they are compared.
    #[inline(always)]
    pub(super) fn take_short<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let frame = batch.get(slot)?;
        let packet = frame.bytes().get(network..)?;
        if packet.len() > S::IP_BYTES + MOST_TCP_BYTES {
            return None;
        }
        let key = flow_key(flow::<S>(packet), frame);
        let place = self.table.guess(self.hasher.hash(&key))?;
        if self.store.held.get(usize::from(place))?.kind() == Kind::PureAck {
            return None;
        }
        let ran = self.run_over::<S, true>(batch, place, slot, network)?;
        let after = slot + ran.count;
        self.append_ran(place, slot, ran);
        Some(after)
    }

    /// Appends the frames from `slot` on that continue what is held at `place`. Returns the sequence number
    /// that continues these; `None` when they are as many as the policy allows, and flushed.
    #[inline(always)]
    fn append_ran(&mut self, place: u16, slot: u32, ran: Ran) -> Option<SeqNumber> {
        let held = &mut self.store.held[usize::from(place)];
        held.append_run(ran.count, ran.id_step);
        let next_seq = held.next_seq;
        let is_full = held.segments >= u32::from(self.config.policy.max_segments);
        let close = is_full.then_some(FlushReason::SegmentLimit);
        self.append(place, slot, ran.count, close).map(|_| next_seq)
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
        let place = self.recent.guess::<S>(frame.bytes().get(network..)?)?;
        let held = self.store.held.get_mut(usize::from(place))?;
        // The guess may be of an earlier poll, and links of slots beyond this batch too: `get` refuses those.
        if held.kind() != Kind::PureAck
            || !self.store.slots.links.is_last_of(held.chain.tail, place)
        {
            return None;
        }
        let is_run = held.chain.tail + 1 == slot;
        let said = follows::<S, B>(batch.get(held.chain.tail)?, frame, network)?;
        let is_trusted = self.config.trust_checksums || frame.checksum.is_trusted();
        if !is_trusted && !Verification::of(held).holds(frame, self.config.summer) {
            return None;
        }
        held.segments += 1;
        let close = (held.segments >= self.ack_limit).then_some(FlushReason::AckLimit);
        self.store.acks[usize::from(place)].said = said;
        let is_held = self.append(place, slot, 1, close).is_some();
        let after = slot + 1;
        Some(if is_held && is_run {
            match network {
                ETHERNET => self.run_of_acks::<S, ETHERNET>(batch, place, after, network),
                RAW_IP => self.run_of_acks::<S, RAW_IP>(batch, place, after, network),
                _ => self.run_of_acks::<S, ANYWHERE>(batch, place, after, network),
            }
        } else {
            after
        })
    }

    /// Appends the pure ACKs from `slot` on that may follow those held at `place`. Returns the slot after the last. A
    /// call, so that ACKs of many flows in turn spare no registers for it.
    #[inline(never)]
    fn run_of_acks<S: Shape, const NETWORK: usize>(
        &mut self,
        batch: Batch<'_, B>,
        place: u16,
        slot: u32,
        network: usize,
    ) -> u32 {
        let network = if NETWORK == ANYWHERE { network } else { NETWORK };
        let held = &self.store.held[usize::from(place)];
        // The frame before `slot` is taken but not yet counted.
        let most = (self.ack_limit - held.segments).min(self.packets_left - 1);
        let frames = batch.upcoming(slot);
        let frames = frames.get(..most as usize).unwrap_or(frames);
        let last = batch.frame(held.chain.tail);
        let following = follow::<S, B>(last, frames, network, |frame, rest| {
            rest.get(HEADER_FRAMES as usize - 1).into_iter().for_each(prefetch_header);
            self.is_trusted(frame) || self.verifies(held, frame)
        });
        let Some(Following { count, said }) = following else { return slot };
        let held = &mut self.store.held[usize::from(place)];
        held.segments += count;
        let close = (held.segments >= self.ack_limit).then_some(FlushReason::AckLimit);
        self.store.acks[usize::from(place)].said = said;
        self.append(place, slot, count, close);
        slot + count
    }

    /// Whether the checksum of `frame`, which is like the last of `held`, is right. A call, so that a loop over
    /// frames that need none has the registers.
    #[inline(never)]
    fn verifies(&self, held: &Held, frame: &Frame<B>) -> bool {
        Verification::of(held).holds(frame, self.config.summer)
    }

    /// Compares and verifies one frame after the other; `SHORT` is that of [`Expected::after`].
    #[inline(always)]
    fn run_over<S: Shape, const SHORT: bool>(
        &self,
        batch: Batch<'_, B>,
        place: u16,
        slot: u32,
        network: usize,
    ) -> Option<Ran> {
        let held = &self.store.held[usize::from(place)];
        let last = batch.frame(held.chain.tail);
        let frames = batch.upcoming(slot);
        let mut room = S::ZEROS;
        let next = frames.first()?.bytes();
        let expected = Expected::<S>::after::<B, SHORT>(held, last, next, network, &mut room)?;
        let id_step = expected.id_step();
        // The frame before `slot` may be taken but not yet counted.
        let most = (self.packets_left - 1).min(expected.steps()).min(frames.len() as u32);
        let most = self.config.policy.room(held, most);
        let frames = frames.get(..most as usize).unwrap_or(frames);
        let count = if self.is_trusted(last) {
            if !SHORT && expected.is_bare() {
                count_run::<S, B, SHORT, true>(expected, frames, |_, _| true)
            } else {
                count_run::<S, B, SHORT, false>(expected, frames, |_, _| true)
            }
        } else {
            let verification = Verification::of(held);
            let summer = self.config.summer;
            count_run::<S, B, SHORT, false>(expected, frames, |frame, rest| {
                if let Some(ahead) = rest.get(PAYLOAD_FRAMES as usize - 1) {
                    arch::prefetch_all(ahead.bytes());
                }
                verification.holds(frame, summer)
            })
        };
        (count != 0).then_some(Ran { count, id_step })
    }
}

/// How many of `frames` continue a run; headers further on are asked for meanwhile. `is_verified` sees a
/// frame and those after it. `SHORT` and `BARE` are those of [`Expected::is_met_by`].
#[inline(always)]
fn count_run<S: Shape, B: AsRef<[u8]>, const SHORT: bool, const BARE: bool>(
    mut expected: Expected<'_, S>,
    mut frames: &[Frame<B>],
    is_verified: impl Fn(&Frame<B>, &[Frame<B>]) -> bool,
) -> u32 {
    let all = frames.len();
    while let [frame, rest @ ..] = frames
        && expected.is_met_by::<B, SHORT, BARE>(frame)
        && is_verified(frame, rest)
    {
        rest.get(HEADER_FRAMES as usize - 1).into_iter().for_each(prefetch_header);
        expected.advance();
        frames = rest;
    }
    (all - frames.len()) as u32
}

impl Verification {
    /// For segments like the last of `held`.
    pub(super) fn of(held: &Held) -> Self {
        Self::of_protocol(held, PROTOCOL_TCP)
    }

    /// For datagrams like the last of `held`.
    pub(super) fn of_datagrams(held: &Held) -> Self {
        Self::of_protocol(held, PROTOCOL_UDP)
    }

    #[inline(always)]
    fn of_protocol(held: &Held, protocol: u8) -> Self {
        Self {
            pseudo_header: held.pseudo_header(protocol, held.last_payload_bytes),
            from: held.at.transport().into(),
            to: usize::from(held.header_bytes) + held.last_payload_bytes as usize,
        }
    }

    /// Whether the TCP or UDP checksum of `frame` is right.
    #[inline(always)]
    pub(super) fn holds<B: AsRef<[u8]>>(self, frame: &Frame<B>, summer: Summer) -> bool {
        let segment = frame.bytes().get(self.from..self.to).unwrap_or_default();
        (summer.sum(segment) + self.pseudo_header).is_valid()
    }
}
