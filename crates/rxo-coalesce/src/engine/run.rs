//! The short way: while the next frame only continues the one just appended.
//!
//! One compare with the expected header covers nearly every rule. Nothing is looked up and little
//! is written, so a run costs a fraction of the full way. Where it stops, the full way decides why.

use core::ops::Range;

use rxo_frame::{Frame, Instant};
use rxo_wire::checksum::Sum;
use rxo_wire::{IpVersion, arch};

use super::Engine;
use super::intake::Intake;
use crate::FlushReason;
use crate::expected::{Expected, Shape, V4, V6};

/// Payloads are asked for this many frames ahead of the one whose checksum is summed.
const PAYLOAD_DISTANCE: usize = 1;

/// What is left to check of an expected segment: its TCP checksum.
#[derive(Clone, Copy)]
struct Verification {
    pseudo_header: Sum,
    /// Where the segment stands in its frame.
    segment: (usize, usize),
}

impl Verification {
    #[inline(always)]
    const fn segment(self) -> Range<usize> {
        self.segment.0..self.segment.1
    }
}

/// How far a run came.
struct Ran {
    appended: u32,
    tail: u32,
    id_step: u16,
}

impl<B: AsRef<[u8]>> Engine<B> {
    /// Appends the frames that continue what is held at `place`, which was appended to last.
    #[inline(always)]
    pub(super) fn run(&mut self, place: u16, frames: &mut Intake<'_, B>, now: Instant) {
        let held = &self.store.held[usize::from(place)];
        let seq_at = usize::from(held.transport) + 4;
        let Some(next) = frames.peek().and_then(|next| next.bytes().get(seq_at..)) else { return };
        if next.first_chunk().is_some_and(|seq| u32::from_be_bytes(*seq) == held.next_seq.0) {
            self.run_from(place, None, frames, now);
        }
    }

    /// The same, beginning with the frame in the slot `first` if there is one. Says whether
    /// anything was appended.
    #[inline(always)]
    pub(super) fn run_from(
        &mut self,
        place: u16,
        first: Option<u32>,
        frames: &mut Intake<'_, B>,
        now: Instant,
    ) -> bool {
        let ran = match self.store.held[usize::from(place)].version {
            IpVersion::V4 => self.run_as::<V4>(place, first, frames),
            IpVersion::V6 => self.run_as::<V6>(place, first, frames),
        };
        let Some(Ran { appended, tail, id_step }) = ran else { return false };
        self.packets_left -= appended - u32::from(first.is_some());
        let held = &mut self.store.held[usize::from(place)];
        held.chain.tail = tail;
        held.append_run(appended, id_step);
        if held.segments >= u32::from(self.config.policy.max_segments) {
            self.flush_held(place, FlushReason::SegmentLimit, now);
        } else {
            self.table.touch(&mut self.store.held, place);
        }
        true
    }

    #[inline(always)]
    fn run_as<S: Shape>(
        &mut self,
        place: u16,
        first: Option<u32>,
        frames: &mut Intake<'_, B>,
    ) -> Option<Ran> {
        let held = &self.store.held[usize::from(place)];
        let last = self.store.frame(held.chain.tail);
        let next = match first {
            Some(slot) => self.store.frame(slot),
            None => frames.peek()?,
        };
        let mut expected = Expected::<S>::after(held, last, next.bytes())?;
        let verification = (!self.is_trusted(last)).then(|| Verification {
            pseudo_header: held.pseudo_header(held.last_payload_bytes),
            segment: (
                held.transport.into(),
                usize::from(held.header_bytes) + held.last_payload_bytes as usize,
            ),
        });
        let room = held.room(&self.config.policy).min(expected.steps());
        let mut ran = Ran { appended: 0, tail: held.chain.tail, id_step: expected.id_step() };
        if let Some(slot) = first {
            if room == 0 || !expected.is_met_by(next) || !self.is_verified(next, verification) {
                return None;
            }
            expected.advance();
            self.store.chain_after(ran.tail, slot);
            ran.tail = slot;
            ran.appended = 1;
        }
        let room = room.min(self.packets_left + ran.appended);
        while ran.appended < room {
            let Some(next) = frames.peek() else { break };
            if !expected.is_met_by(next) || self.store.is_full() {
                break;
            }
            if verification.is_some() {
                if let Some(ahead) = frames.peek_after(PAYLOAD_DISTANCE) {
                    arch::prefetch_all(ahead.bytes());
                }
                if !self.is_verified(next, verification) {
                    break;
                }
            }
            expected.advance();
            let Some(frame) = frames.next() else { break };
            let slot = self.store.put(frame);
            self.store.chain_after(ran.tail, slot);
            ran.tail = slot;
            ran.appended += 1;
        }
        (ran.appended > 0).then_some(ran)
    }

    #[inline(always)]
    fn is_verified(&self, frame: &Frame<B>, verification: Option<Verification>) -> bool {
        let Some(verification) = verification else { return true };
        let segment = frame.bytes().get(verification.segment()).unwrap_or_default();
        (self.config.summer.sum(segment) + verification.pseudo_header).is_valid()
    }
}
