//! Data of one flow, interleaved with pure ACKs of other flows: the traffic of a host that receives and sends
//! at the same time.
//!
//! A pure ACK between two data segments of a flow interrupts the run of the flow, although the frame after the
//! ACK usually continues it. So the prediction of the next data segment is kept across such ACKs, and later data
//! is compared with it. This code is separate from that for runs, whose frames are in consecutive slots and need
//! no link per frame.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::ethertype;

use super::Engine;
use super::checksums::Verification;
use super::cursor::{Cursor, flow_key};
use super::plain::plain_ack;
use super::prefetch::prefetch_header_in;
use crate::expected::Expected;
use crate::shape::{Shape, Start};
use crate::single::Starts;
use crate::{BypassReason, FlushReason};

impl<B: FrameBuffer> Engine<B> {
    /// Receives a plain pure ACK under a policy that does not aggregate pure ACKs: flushes its flow, then
    /// delivers the ACK untouched. Continues with the frames after it, as long as each frame continues the flow
    /// of the frame before the ACK, or is a pure ACK of a flow that holds nothing. Returns the slot after the
    /// last received frame.
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
        // The ACK interrupted a run only if the frame directly before it is the last one of a held flow.
        let Some(flow) = self.store.slots.links.held_at(at.slot().wrapping_sub(1)) else {
            return Some(after);
        };
        let next_seq = self.store.held[usize::from(flow)].next_seq;
        if !at.next().has_seq(at.network() + S::IP_BYTES, next_seq) {
            return Some(after);
        }
        Some(self.take_in_turn::<S>(at.next(), flow).unwrap_or(after))
    }

    /// Receives the frame at `first` and the frames behind it, as long as each continues `flow` or is a pure
    /// ACK of a flow that holds nothing. Returns the slot behind the last received frame, or `None` if the next
    /// frame of the flow cannot be predicted. Not inlined, so that other paths reserve no registers for it.
    #[inline(never)]
    fn take_in_turn<S: Shape>(&mut self, first: Cursor<'_, B>, flow: u16) -> Option<u32> {
        let network = first.network();
        let held = &self.store.held[usize::from(flow)];
        let mut tail = held.chain.tail;
        let (last, next) = (first.moved_to(tail).frame()?, first.frame()?);
        let mut room = S::Headers::ZEROS;
        let mut expected =
            Expected::<S>::after::<B, false>(held, last, next.bytes(), network, &mut room)?;
        let id_step = expected.id_step();
        // One less, because the ACK before is received but not yet counted.
        let mut frames = first.upcoming();
        let most = (self.packets_left - 1).min(frames.len() as u32);
        frames = frames.get(..most as usize).unwrap_or(frames);
        let room = held.room(&self.config.policy, expected.steps().min(most));
        let verification = (!self.is_trusted(last)).then(|| Verification::of(held));
        let summer = self.config.summer;
        let is_intact = |frame| verification.is_none_or(|sum| sum.holds(frame, summer));
        let starts = Starts::after(network, S::IP_BYTES);
        let (mut at, mut count) = (first.slot(), 0);
        while count < room
            && let [frame, rest @ ..] = frames
        {
            if expected.matches::<B, false, false>(frame) && is_intact(frame) {
                self.store.slots.links.append(tail, at, 1, flow);
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
            self.append_scattered(flow, tail, (count, id_step));
        }
        Some(at)
    }

    /// Adds `count` segments, which are already linked and end with `tail`, to the state of the flow.
    #[inline]
    fn append_scattered(&mut self, flow: u16, tail: u32, (count, id_step): (u32, u16)) {
        let held = &mut self.store.held[usize::from(flow)];
        held.append_run(count, id_step);
        held.chain.tail = tail;
        if held.segments >= u32::from(self.config.policy.max_segments) {
            self.flush_held(flow, FlushReason::SegmentLimit, self.now);
        }
    }

    /// Returns `true` if `frame` is a plain pure ACK of a flow that holds nothing. Checks only the flow's
    /// bucket: returns `false` if the bucket holds any flow.
    #[inline(always)]
    fn is_ack_of_idle_flow<S: Shape>(&self, frame: &Frame<B>, network: usize) -> bool {
        if network != 0 && ethertype(frame.bytes()) != Some(S::ETHERTYPE) {
            return false;
        }
        let Some(plain) = plain_ack::<S, B>(frame, network) else { return false };
        self.table.guess(self.hasher.hash(&flow_key(plain.key, frame))).is_none()
    }
}
