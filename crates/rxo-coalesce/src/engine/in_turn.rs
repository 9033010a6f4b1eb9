//! Data of one flow and pure ACKs of others in turn, as a host gets them that receives and sends at once.
//!
//! A pure ACK that is delivered as it came ends a run, but most often the frame after it would have continued
//! the run. So what is expected is kept beyond such ACKs, and data is compared with it as in a run. Separate
//! from runs because these are side by side: no link is written and no frame of them is read but by the compare.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::ethertype;

use super::Engine;
use super::checksums::Verification;
use super::cursor::{Cursor, flow_key};
use super::plain::plain_ack;
use super::prefetch::prefetch_header_in;
use crate::expected::Expected;
use crate::shape::Shape;
use crate::single::Starts;
use crate::{BypassReason, FlushReason};

impl<B: FrameBuffer> Engine<B> {
    /// Takes a plain pure ACK where the policy aggregates none: it is delivered after what its flow holds. Then takes
    /// the frames behind it, as long as each continues the flow of the frame before the ACK, or is a pure ACK of a flow
    /// that holds nothing. Returns the slot after the last.
    #[inline(always)]
    pub(super) fn take_ack_alone<S: Shape>(&mut self, at: Cursor<'_, B>) -> Option<u32> {
        let frame = at.frame()?;
        let plain = plain_ack::<S, B>(frame, at.network())?;
        let (starts, after) = (Starts::after(at.network(), S::IP_BYTES), at.slot() + 1);
        if self.table.is_empty() {
            self.deliver_untouched(at.slot(), starts, BypassReason::PureAck);
            return Some(after);
        }
        self.flush_flow(&flow_key(plain.key, frame));
        self.deliver_untouched(at.slot(), starts, BypassReason::PureAck);
        let Some(place) = self.store.slots.links.held_at(at.slot().wrapping_sub(1)) else {
            return Some(after);
        };
        let next_seq = self.store.held[usize::from(place)].next_seq;
        if !at.next().has_seq(at.network() + S::IP_BYTES, next_seq) {
            return Some(after);
        }
        Some(self.take_in_turn::<S>(at.next(), place).unwrap_or(after))
    }

    /// Takes frames from this one on for what is held at `place`. Returns the slot after the last; `None` if it
    /// took none. A call, so that others spare no registers for it.
    #[inline(never)]
    fn take_in_turn<S: Shape>(&mut self, first: Cursor<'_, B>, place: u16) -> Option<u32> {
        let network = first.network();
        let held = &self.store.held[usize::from(place)];
        let mut tail = held.chain.tail;
        let (last, next) = (first.moved_to(tail).frame()?, first.frame()?);
        let mut room = S::ZEROS;
        let mut expected =
            Expected::<S>::after::<B, false>(held, last, next.bytes(), network, &mut room)?;
        let id_step = expected.id_step();
        // The ACK before is taken but not yet counted.
        let mut frames = first.upcoming();
        let most = (self.packets_left - 1).min(frames.len() as u32);
        frames = frames.get(..most as usize).unwrap_or(frames);
        let room = self.config.policy.room(held, expected.steps().min(most));
        let verification = (!self.is_trusted(last)).then(|| Verification::of(held));
        let summer = self.config.summer;
        let is_intact = |frame| verification.is_none_or(|sum| sum.holds(frame, summer));
        let starts = Starts::after(network, S::IP_BYTES);
        let (mut at, mut count) = (first.slot(), 0);
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
            prefetch_header_in(rest);
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
