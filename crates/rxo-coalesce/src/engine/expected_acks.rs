//! The *Expected* tier for pure ACKs, under policies that aggregate them.

use rxo_frame::{Frame, FrameBuffer};

use super::Engine;
use super::checksums::Verification;
use super::cursor::{ANYWHERE, Cursor, ETHERNET, RAW_IP};
use super::prefetch::prefetch_header_in;
use crate::acks::{Following, follow, follows};
use crate::held::Held;
use crate::shape::Shape;
use crate::{FlushReason, Kind};

impl<B: FrameBuffer> Engine<B> {
    /// Appends a pure ACK to the ACKs held at the guessed index, if it may follow them, and then the ACKs
    /// after it in the batch. Returns the slot after the last appended ACK; `None` if slower tiers must
    /// decide.
    #[inline(always)]
    pub(super) fn take_next_ack<S: Shape>(&mut self, at: Cursor<'_, B>) -> Option<u32> {
        let frame = at.frame()?;
        let flow = self.recent.guess::<S>(at.packet()?)?;
        let held = self.store.held.get_mut(usize::from(flow))?;
        let tail = held.chain.tail;
        // The guess may be from an earlier poll, and its slot beyond this batch; `frame` returns `None` for
        // such a slot.
        if held.kind() != Kind::PureAck || !self.store.slots.links.is_last_of(tail, flow) {
            return None;
        }
        let is_run = tail + 1 == at.slot();
        let point = follows::<S, B>(at.moved_to(tail).frame()?, frame, at.network())?;
        let is_trusted = self.config.trust_checksums || frame.checksum.is_trusted();
        if !is_trusted && !Verification::of(held).holds(frame, self.config.summer) {
            return None;
        }
        let is_held = self.append_acks(flow, at.slot(), Following { count: 1, point });
        let at = at.next();
        Some(match (is_held && is_run, at.network()) {
            (false, _) => at.slot(),
            (true, ETHERNET) => self.run_of_acks::<S, ETHERNET>(at, flow),
            (true, RAW_IP) => self.run_of_acks::<S, RAW_IP>(at, flow),
            (true, _) => self.run_of_acks::<S, ANYWHERE>(at, flow),
        })
    }

    /// Appends to `flow` the pure ACK at `at` and the pure ACKs behind it in the batch, up to the first that
    /// may not follow. Returns the slot behind the last appended ACK. Not inlined, so that the path for
    /// interleaved ACKs of many flows does not reserve registers for it.
    #[inline(never)]
    fn run_of_acks<S: Shape, const NETWORK: usize>(&mut self, at: Cursor<'_, B>, flow: u16) -> u32 {
        let network = if NETWORK == ANYWHERE { at.network() } else { NETWORK };
        let held = &self.store.held[usize::from(flow)];
        // The frame before is received but not yet counted, hence 1 less.
        let most = (self.ack_limit - held.segments).min(self.packets_left - 1);
        let frames = at.upcoming();
        let frames = frames.get(..most as usize).unwrap_or(frames);
        let last = at.held(held.chain.tail);
        let following = follow::<S, B>(last, frames, network, |frame, rest| {
            prefetch_header_in(rest);
            self.is_trusted(frame) || self.verifies(held, frame)
        });
        let Some(following) = following else { return at.slot() };
        self.append_acks(flow, at.slot(), following);
        at.slot() + following.count
    }

    /// Appends to `flow` the `count` pure ACKs in the slots from `slot` on. Returns `false` if the flow was
    /// then flushed.
    #[inline(always)]
    fn append_acks(&mut self, flow: u16, slot: u32, Following { count, point }: Following) -> bool {
        let held = &mut self.store.held[usize::from(flow)];
        held.segments += count;
        let close = (held.segments >= self.ack_limit).then_some(FlushReason::AckLimit);
        self.store.acks[usize::from(flow)].point = point;
        self.append(flow, slot, count, close).is_some()
    }

    /// Returns `true` if the checksum of `frame`, whose headers are like those of the last frame of `held`, is right.
    /// Not inlined, so that a loop over trusted frames keeps its registers.
    #[inline(never)]
    fn verifies(&self, held: &Held, frame: &Frame<B>) -> bool {
        Verification::of(held).holds(frame, self.config.summer)
    }
}
