//! Data of one flow and pure ACKs of others in turn, as a host gets them that receives and sends at once.
//!
//! A pure ACK that is delivered as it came ends a run, but most often the frame after it would have continued
//! the run. So what is expected is kept beyond such ACKs, and data is compared with it as in a run. Separate
//! from runs because these are side by side: no link is written and no frame of them is read but by the compare.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::{Plain, ethertype};

use super::Engine;
use super::apply::flow_key;
use super::batch::Batch;
use super::expected::Verification;
use super::take::{HEADER_FRAMES, prefetch_header};
use crate::expected::{Expected, Shape};
use crate::single::Starts;
use crate::{BypassReason, FlushReason};

impl<B: FrameBuffer> Engine<B> {
    /// Takes the frames behind the pure ACK in `slot`, as long as each continues the flow of the frame before
    /// that ACK, or is a pure ACK of a flow that holds nothing. Returns the slot after the last.
    #[inline(always)]
    pub(super) fn take_in_turn<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        network: usize,
    ) -> u32 {
        let Some(place) = self.store.slots.links.held_at(slot.wrapping_sub(1)) else {
            return slot + 1;
        };
        let next_seq = self.store.held[usize::from(place)].next_seq;
        if !batch.has_at(slot + 1, network + S::IP_BYTES, next_seq) {
            return slot + 1;
        }
        self.in_turn::<S>(batch, place, slot + 1, network).unwrap_or(slot + 1)
    }

    /// Takes frames from `slot` on for what is held at `place`. Returns the slot after the last; `None` if it
    /// took none. A call, so that others spare no registers for it.
    #[inline(never)]
    fn in_turn<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        place: u16,
        slot: u32,
        network: usize,
    ) -> Option<u32> {
        let held = &self.store.held[usize::from(place)];
        let mut tail = held.chain.tail;
        let (last, next) = (batch.get(tail)?, batch.get(slot)?);
        let mut room = S::ZEROS;
        let mut expected =
            Expected::<S>::after::<B, false>(held, last, next.bytes(), network, &mut room)?;
        let id_step = expected.id_step();
        // The ACK before `slot` is taken but not yet counted.
        let mut frames = batch.upcoming(slot);
        let most = (self.packets_left - 1).min(frames.len() as u32);
        frames = frames.get(..most as usize).unwrap_or(frames);
        let room = self.config.policy.room(held, expected.steps().min(most));
        let verification = (!self.is_trusted(last)).then(|| Verification::of(held));
        let summer = self.config.summer;
        let is_intact = |frame| verification.is_none_or(|sum| sum.holds(frame, summer));
        let starts = Starts::after(network, S::IP_BYTES);
        let (mut at, mut count) = (slot, 0);
        while count < room
            && let [frame, rest @ ..] = frames
        {
            if expected.is_met_by::<B, false, false>(frame) && is_intact(frame) {
                self.store.slots.links.append(tail, at, 1, place);
                tail = at;
                count += 1;
                expected.advance();
            } else if self.is_ack_of_idle_flow::<S>(frame, network) {
                self.deliver_untouched(at, starts, BypassReason::PureAck);
            } else {
                break;
            }
            rest.get(HEADER_FRAMES as usize - 1).into_iter().for_each(prefetch_header);
            frames = rest;
            at += 1;
        }
        if count != 0 {
            self.append_scattered(place, tail, (count, id_step));
        }
        Some(at)
    }

    /// Appends `count` segments, which are chained already and end with `tail`.
    #[inline(always)]
    fn append_scattered(&mut self, place: u16, tail: u32, (count, id_step): (u32, u16)) {
        let held = &mut self.store.held[usize::from(place)];
        held.append_run(count, id_step);
        held.chain.tail = tail;
        if held.segments >= u32::from(self.config.policy.max_segments) {
            self.flush_held(place, FlushReason::SegmentLimit, self.now);
        }
    }

    /// Whether `frame` is a plain pure ACK of a flow that holds nothing. `false` if more than a look into the
    /// flow's bucket is needed to know.
    #[inline(always)]
    fn is_ack_of_idle_flow<S: Shape>(&self, frame: &Frame<B>, network: usize) -> bool {
        if network != 0 && ethertype(frame.bytes()) != Some(S::ETHERTYPE) {
            return false;
        }
        let Some(plain) = plain_ack::<S, B>(frame, network) else { return false };
        self.table.guess(self.hasher.hash(&flow_key(plain.key, frame))).is_none()
    }
}

/// Reads a plain pure ACK that can be delivered as it came.
#[inline(always)]
pub(super) fn plain_ack<S: Shape, B: FrameBuffer>(
    frame: &Frame<B>,
    network: usize,
) -> Option<Plain> {
    let packet = frame.bytes().get(network..)?;
    let plain = S::plain(packet)?;
    let is_pure = plain.payload_bytes == 0 && frame.gso.is_none();
    (is_pure && S::is_checksum_right(packet)).then_some(plain)
}
