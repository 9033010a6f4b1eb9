//! The short way: while the next frame only continues the one just appended.
//!
//! One compare with the expected header covers nearly every rule. Nothing is looked up and little
//! is written, so a run costs a fraction of the full way. Where it stops, the full way decides why.

use rxo_frame::{Frame, Instant};
use rxo_wire::arch;
use rxo_wire::checksum::{Sum, Summer};

use super::Engine;
use super::take::PAYLOAD_FRAMES;
use crate::FlushReason;
use crate::expected::{Expected, Shape, step};
use crate::held::Held;

/// What is left to check of an expected segment: its TCP checksum.
#[derive(Clone, Copy)]
struct Verification {
    pseudo_header: Sum,
    /// Where the segment stands in its frame.
    from: usize,
    to: usize,
}

/// How far a run came.
struct Ran {
    /// The slot after the last one appended.
    after: u32,
    id_step: u16,
}

impl<B: AsRef<[u8]>> Engine<B> {
    /// Appends the frames after `slot`, the last one held at `place`, that continue it, up to
    /// before `to`. Returns the slot after the last.
    #[inline(always)]
    pub(super) fn run<S: Shape>(&mut self, place: u16, slot: u32, to: u32, now: Instant) -> u32 {
        let next = slot + 1;
        if next == to {
            return next;
        }
        let held = &self.store.held[usize::from(place)];
        let seq_at = usize::from(held.transport) + 4;
        let seq = self.store.bytes(next).get(seq_at..).and_then(|rest| rest.first_chunk());
        if seq.is_none_or(|seq| u32::from_be_bytes(*seq) != held.next_seq.0) {
            return next;
        }
        self.run_from::<S>(place, next, to, now)
    }

    /// Appends the frame in `slot` to what is held at `place`, if it only continues it, and those
    /// after it. `None` when it does not.
    #[inline(always)]
    pub(super) fn continue_run<S: Shape>(
        &mut self,
        place: u16,
        slot: u32,
        to: u32,
        now: Instant,
    ) -> Option<u32> {
        let held = &self.store.held[usize::from(place)];
        let (last, frame) = (self.store.frame(held.chain.tail), self.store.frame(slot));
        let fits = held.segments < u32::from(self.config.policy.max_segments)
            && held.packet_bytes() + held.last_payload_bytes <= self.config.policy.max_bytes
            && held.payload_bytes + held.last_payload_bytes <= self.config.policy.buffer_bytes;
        let id_step = step::<S, B>(held, last, frame)?;
        if !fits
            || !(self.is_trusted(frame) || Verification::of(held).holds(frame, self.config.summer))
        {
            return None;
        }
        let held = &mut self.store.held[usize::from(place)];
        let tail = core::mem::replace(&mut held.chain.tail, slot);
        held.append_run(1, id_step);
        let is_full = held.segments == u32::from(self.config.policy.max_segments);
        self.store.chain_after(tail, slot);
        if is_full {
            self.flush_held(place, FlushReason::SegmentLimit, now);
            return Some(slot + 1);
        }
        self.table.touch(&mut self.store.held, place);
        Some(self.run::<S>(place, slot, to, now))
    }

    /// The same for the frames from `slot` on.
    #[inline(never)]
    fn run_from<S: Shape>(&mut self, place: u16, slot: u32, to: u32, now: Instant) -> u32 {
        // The frame before `slot` is taken but not yet counted.
        let to = to.min(slot.saturating_add(self.packets_left - 1));
        let Some(Ran { after, id_step }) = self.run_over::<S>(place, slot, to) else { return slot };
        let held = &mut self.store.held[usize::from(place)];
        held.chain.tail = after - 1;
        held.append_run(after - slot, id_step);
        if held.segments >= u32::from(self.config.policy.max_segments) {
            self.flush_held(place, FlushReason::SegmentLimit, now);
        } else {
            self.table.touch(&mut self.store.held, place);
        }
        after
    }

    /// Compares, verifies and chains, one frame after the other.
    #[inline(always)]
    fn run_over<S: Shape>(&mut self, place: u16, slot: u32, to: u32) -> Option<Ran> {
        let held = &self.store.held[usize::from(place)];
        let last = self.store.frame(held.chain.tail);
        let expected = Expected::<S>::after(held, last, self.store.bytes(slot))?;
        let id_step = expected.id_step();
        let most = expected.steps().min(self.config.policy.room(held));
        let frames = self.store.frames(slot, to.min(slot.saturating_add(most)));
        let count = if self.is_trusted(last) {
            count_run(expected, frames, |_, _| true)
        } else {
            let verification = Verification::of(held);
            let summer = self.config.summer;
            count_run(expected, frames, |frame, ahead| {
                if let Some(ahead) = ahead.get(PAYLOAD_FRAMES as usize) {
                    arch::prefetch_all(ahead.bytes());
                }
                verification.holds(frame, summer)
            })
        };
        self.store.chain_run(held.chain.tail, slot, count);
        (count != 0).then_some(Ran { after: slot + count, id_step })
    }
}

/// How many of `frames` continue a run; `is_verified` sees a frame and those after it.
#[inline(always)]
fn count_run<S: Shape, B: AsRef<[u8]>>(
    mut expected: Expected<S>,
    frames: &[Frame<B>],
    is_verified: impl Fn(&Frame<B>, &[Frame<B>]) -> bool,
) -> u32 {
    let mut count = 0;
    for (index, frame) in frames.iter().enumerate() {
        if !expected.is_met_by(frame) || !is_verified(frame, &frames[index..]) {
            break;
        }
        expected.advance();
        count += 1;
    }
    count
}

impl Verification {
    /// For segments like the last of `held`.
    fn of(held: &Held) -> Self {
        Self {
            pseudo_header: held.pseudo_header(held.last_payload_bytes),
            from: held.transport.into(),
            to: usize::from(held.header_bytes) + held.last_payload_bytes as usize,
        }
    }

    /// Whether the TCP checksum of `frame` is right.
    #[inline(always)]
    fn holds<B: AsRef<[u8]>>(self, frame: &Frame<B>, summer: Summer) -> bool {
        let segment = frame.bytes().get(self.from..self.to).unwrap_or_default();
        (summer.sum(segment) + self.pseudo_header).is_valid()
    }
}
