//! The short way: while the next frame only continues the one just appended.
//!
//! One compare with the expected header covers nearly every rule. Nothing is looked up and little
//! is written, so a run costs a fraction of the full way. Where it stops, the full way decides why.

use rxo_frame::Frame;
use rxo_wire::checksum::{Sum, Summer};
use rxo_wire::{ETHERNET_HEADER_BYTES, Plain, arch};

use super::Engine;
use super::batch::Batch;
use super::take::PAYLOAD_FRAMES;
use crate::FlushReason;
use crate::expected::{Expected, Shape};
use crate::follows::follows;
use crate::held::Held;

/// What is left to check of an expected segment: its TCP checksum.
#[derive(Clone, Copy)]
pub(super) struct Verification {
    pseudo_header: Sum,
    /// Where the segment stands in its frame.
    from: usize,
    to: usize,
}

/// How far a run came.
struct Ran {
    /// How many frames were appended, at least one.
    count: u32,
    id_step: u16,
}

impl<B: AsRef<[u8]>> Engine<B> {
    /// Appends the frames after `slot`, the last one held at `place`, that continue it. Returns the
    /// slot after the last.
    #[inline(always)]
    pub(super) fn run<S: Shape>(&mut self, batch: Batch<'_, B>, place: u16, slot: u32) -> u32 {
        let held = &self.store.held[usize::from(place)];
        let goes_on = batch.has_at(slot + 1, held.transport.into(), held.next_seq);
        self.run_if::<S>(goes_on, batch, place, slot + 1)
    }

    /// The same for the frames from `slot` on, if the first of them `goes_on` from what is held: the
    /// next sequence number says so before anything else is read.
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

    /// Appends the plain frame in `slot` to what is held at `place`, if it only continues it, and
    /// those after it. `None` when it does not.
    #[inline(always)]
    pub(super) fn continue_run<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        place: u16,
        slot: u32,
        (plain, network): (&Plain, usize),
    ) -> Option<u32> {
        let policy = &self.config.policy;
        let max_segments = u32::from(policy.max_segments);
        let frame = batch.get(slot)?;
        let held = &mut self.store.held[usize::from(place)];
        let id_step = follows::<S, B>(held, batch.get(held.chain.tail)?, frame, plain, network)?;
        let fits = held.segments < max_segments
            && held.packet_bytes() + plain.payload_bytes <= policy.max_bytes
            && held.payload_bytes + plain.payload_bytes <= policy.buffer_bytes;
        let is_trusted = self.config.trust_checksums || frame.checksum.is_trusted();
        if !fits || !(is_trusted || Verification::of(held).holds(frame, self.config.summer)) {
            return None;
        }
        let tail = core::mem::replace(&mut held.chain.tail, slot);
        held.append_run(1, id_step);
        let (is_full, next_seq) = (held.segments == max_segments, held.next_seq);
        self.store.links.append(tail, slot, place);
        self.note_more_data(place, frame);
        if is_full {
            self.flush_held(place, FlushReason::SegmentLimit, self.now);
            return Some(slot + 1);
        }
        let goes_on = batch.has_at(slot + 1, network + S::IP_BYTES, next_seq);
        Some(self.run_if::<S>(goes_on, batch, place, slot + 1))
    }

    /// Appends the frames from `slot` on. Where the IP header most often begins is known when this is
    /// compiled: then nothing has to be kept or added for it.
    #[inline(always)]
    fn run_from<S: Shape>(&mut self, batch: Batch<'_, B>, place: u16, slot: u32) -> u32 {
        let network = usize::from(self.store.held[usize::from(place)].network);
        match network {
            ETHERNET_HEADER_BYTES => self.run_ethernet::<S>(batch, place, slot),
            _ => self.run_elsewhere::<S>(batch, place, slot, network),
        }
    }

    #[inline(never)]
    fn run_ethernet<S: Shape>(&mut self, batch: Batch<'_, B>, place: u16, slot: u32) -> u32 {
        self.run_at::<S>(batch, place, slot, ETHERNET_HEADER_BYTES)
    }

    #[inline(never)]
    fn run_elsewhere<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        place: u16,
        slot: u32,
        network: usize,
    ) -> u32 {
        self.run_at::<S>(batch, place, slot, network)
    }

    #[inline(always)]
    fn run_at<S: Shape>(
        &mut self,
        batch: Batch<'_, B>,
        place: u16,
        slot: u32,
        network: usize,
    ) -> u32 {
        let Some(Ran { count, id_step }) = self.run_over::<S>(batch, place, slot, network) else {
            return slot;
        };
        let held = &mut self.store.held[usize::from(place)];
        let tail = core::mem::replace(&mut held.chain.tail, slot + count - 1);
        held.append_run(count, id_step);
        let is_full = held.segments >= u32::from(self.config.policy.max_segments);
        self.store.links.append_run(tail, slot, count, place);
        self.note_more_data(place, batch.frame(slot + count - 1));
        if is_full {
            self.flush_held(place, FlushReason::SegmentLimit, self.now);
        }
        slot + count
    }

    /// Compares and verifies one frame after the other.
    #[inline(always)]
    fn run_over<S: Shape>(
        &self,
        batch: Batch<'_, B>,
        place: u16,
        slot: u32,
        network: usize,
    ) -> Option<Ran> {
        let held = &self.store.held[usize::from(place)];
        let last = batch.frame(held.chain.tail);
        let frames = batch.upcoming(slot);
        let expected = Expected::<S>::after(held, last, frames.first()?.bytes(), network)?;
        let id_step = expected.id_step();
        // The frame before `slot` is taken but not yet counted.
        let most = (self.packets_left - 1).min(expected.steps()).min(frames.len() as u32);
        let most = self.config.policy.room(held, most);
        let frames = frames.get(..most as usize).unwrap_or(frames);
        let count = if self.is_trusted(last) {
            count_run(expected, frames, |_, _| true)
        } else {
            let verification = Verification::of(held);
            let summer = self.config.summer;
            count_run(expected, frames, |frame, rest| {
                if let Some(ahead) = rest.get(PAYLOAD_FRAMES as usize - 1) {
                    arch::prefetch_all(ahead.bytes());
                }
                verification.holds(frame, summer)
            })
        };
        (count != 0).then_some(Ran { count, id_step })
    }
}

/// How many of `frames` continue a run; `is_verified` sees a frame and those after it.
#[inline(always)]
fn count_run<S: Shape, B: AsRef<[u8]>>(
    mut expected: Expected<'_, S>,
    mut frames: &[Frame<B>],
    is_verified: impl Fn(&Frame<B>, &[Frame<B>]) -> bool,
) -> u32 {
    let mut count = 0;
    while let [frame, rest @ ..] = frames
        && expected.is_met_by(frame)
        && is_verified(frame, rest)
    {
        expected.advance();
        count += 1;
        frames = rest;
    }
    count
}

impl Verification {
    /// For segments like the last of `held`.
    pub(super) fn of(held: &Held) -> Self {
        Self {
            pseudo_header: held.pseudo_header(held.last_payload_bytes),
            from: held.transport.into(),
            to: usize::from(held.header_bytes) + held.last_payload_bytes as usize,
        }
    }

    /// Whether the TCP checksum of `frame` is right.
    #[inline(always)]
    pub(super) fn holds<B: AsRef<[u8]>>(self, frame: &Frame<B>, summer: Summer) -> bool {
        let segment = frame.bytes().get(self.from..self.to).unwrap_or_default();
        (summer.sum(segment) + self.pseudo_header).is_valid()
    }
}
