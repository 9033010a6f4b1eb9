//! The short way: while the next frame only continues the one just appended.
//!
//! One masked compare with the last segment's header covers nearly every rule; SEQ, IP ID and IP
//! checksum must follow from the last ones. Nothing is looked up and little is written, so a run
//! costs a fraction of the full way. Where it stops, the full way decides why.

use core::ops::Range;

use rxo_frame::{ChecksumStatus, Frame, Instant, VlanTag};
use rxo_wire::checksum::Sum;
use rxo_wire::{IpVersion, arch};

use super::intake::Intake;
use super::{Engine, MASKS};
use crate::FlushReason;
use crate::held::{Held, IdPattern};
use crate::image::{Image, Layout, Mask};

/// Payloads are asked for this many frames ahead of the one whose checksum is summed.
const PAYLOAD_DISTANCE: usize = 1;

impl<B: AsRef<[u8]>> Engine<B> {
    /// Appends the frames that continue what is held at `place`, which was appended to last.
    #[inline(always)]
    pub(super) fn run(&mut self, place: u16, frames: &mut Intake<'_, B>, now: Instant) {
        let held = &self.store.held[usize::from(place)];
        let seq_at = usize::from(held.transport) + 4;
        if frames.peek().is_some_and(|next| word(next.bytes(), seq_at) == held.next_seq.0) {
            self.run_from(place, None, frames, now);
        }
    }

    /// The same, beginning with the frame in the slot `first` if there is one. Says whether that
    /// was appended.
    #[inline]
    pub(super) fn run_from(
        &mut self,
        place: u16,
        first: Option<u32>,
        frames: &mut Intake<'_, B>,
        now: Instant,
    ) -> bool {
        let held = &self.store.held[usize::from(place)];
        let last = self.store.frame(held.chain.tail);
        let next = match first {
            Some(slot) => self.store.frame(slot).bytes(),
            None => frames.peek().map_or(&[][..], Frame::bytes),
        };
        let Some(mut expected) = Expected::after(held, last, next) else { return false };
        if !self.is_trusted(last) {
            expected.pseudo_header = Some(held.pseudo_header(held.last_payload_bytes));
        }
        let layout = Layout::of(held);
        let mask = &mut self.masks[layout.slot(MASKS)];
        if !mask.is_for(layout) {
            *mask = Mask::new(layout);
        }
        let (room, mut tail) = (held.room(&self.config.policy), held.chain.tail);
        let mut appended = 0;
        let summer = self.config.summer;
        if let Some(slot) = first {
            let frame = self.store.frame(slot);
            let intact = |pseudo_header| {
                frame
                    .bytes()
                    .get(expected.segment())
                    .is_some_and(|segment| (summer.sum(segment) + pseudo_header).is_valid())
            };
            if room == 0
                || !expected.is_met_by(frame, mask)
                || !expected.pseudo_header.is_none_or(intact)
            {
                return false;
            }
            expected.advance();
            self.store.chain_after(tail, slot);
            tail = slot;
            appended = 1;
        }
        let taken = appended;
        let room = room.min(self.packets_left + taken);
        while appended < room && !self.store.is_full() {
            let Some(next) = frames.peek() else { break };
            if !expected.is_met_by(next, mask) {
                break;
            }
            if let Some(pseudo_header) = expected.pseudo_header {
                if let Some(ahead) = frames.peek_after(PAYLOAD_DISTANCE) {
                    arch::prefetch_all(ahead.bytes());
                }
                let segment = next.bytes().get(expected.segment()).unwrap_or_default();
                if !(summer.sum(segment) + pseudo_header).is_valid() {
                    break;
                }
            }
            expected.advance();
            let Some(frame) = frames.next() else { break };
            let slot = self.store.put(frame);
            self.store.chain_after(tail, slot);
            tail = slot;
            appended += 1;
        }
        if appended == 0 {
            return false;
        }
        self.packets_left -= appended - taken;
        let held = &mut self.store.held[usize::from(place)];
        held.chain.tail = tail;
        held.append_run(appended, expected.step);
        if held.segments >= u32::from(self.config.policy.max_segments) {
            self.flush_held(place, FlushReason::SegmentLimit, now);
        } else {
            self.table.touch(&mut self.store.held, place);
        }
        true
    }
}

/// What the next segment of a run must look like.
struct Expected {
    image: Image,
    frame_bytes: usize,
    header_bytes: u32,
    transport: usize,
    network: usize,
    payload_bytes: u32,
    checksum: ChecksumStatus,
    vlan: Option<VlanTag>,
    seq: u32,
    id: u16,
    ip_checksum: u16,
    /// 1 when the IPv4 ID counts; 0 when it stays, and for IPv6.
    step: u16,
    /// What the TCP checksum is taken over besides the segment; `None` when it is trusted.
    pseudo_header: Option<Sum>,
}

impl Expected {
    /// What follows `last`, the last segment of `held`; `next` decides whether the ID counts
    /// where that is still open. `None` when only the full rules can tell.
    #[inline(always)]
    fn after<B: AsRef<[u8]>>(held: &Held, last: &Frame<B>, next: &[u8]) -> Option<Self> {
        let bytes = last.bytes();
        let network = usize::from(held.network);
        let id = half(bytes, network + 4);
        let step = match (held.version, held.id_pattern) {
            (IpVersion::V6, _) | (_, IdPattern::Fixed) => 0,
            (_, IdPattern::Incrementing) => 1,
            (_, IdPattern::Undecided) => half(next, network + 4).wrapping_sub(id),
        };
        // Equal IDs without DF would name fragments of one packet.
        let may_stay = held.version == IpVersion::V6 || half(bytes, network + 6) & 0x4000 != 0;
        if step > 1 || (step == 0 && !may_stay) {
            return None;
        }
        let mut expected = Self {
            image: Image::of(bytes, held.header_bytes.into())?,
            frame_bytes: bytes.len(),
            header_bytes: held.header_bytes.into(),
            transport: held.transport.into(),
            network,
            payload_bytes: held.last_payload_bytes,
            checksum: last.checksum,
            vlan: last.vlan,
            seq: held.next_seq.0.wrapping_sub(held.last_payload_bytes),
            id,
            ip_checksum: half(bytes, network + 10),
            step,
            pseudo_header: None,
        };
        expected.advance();
        Some(expected)
    }

    /// Where the TCP segment stands in the frame.
    #[inline(always)]
    const fn segment(&self) -> Range<usize> {
        self.transport..self.header_bytes as usize + self.payload_bytes as usize
    }

    /// Whether `next` is the expected segment, its TCP checksum aside.
    #[inline(always)]
    fn is_met_by<B: AsRef<[u8]>>(&self, next: &Frame<B>, mask: &Mask) -> bool {
        let bytes = next.bytes();
        bytes.len() == self.frame_bytes
            && next.checksum == self.checksum
            && next.gso.is_none()
            && next.vlan == self.vlan
            && word(bytes, self.transport + 4) == self.seq
            && half(bytes, self.network + 4) == self.id
            && half(bytes, self.network + 10) == self.ip_checksum
            && Image::of(bytes, self.header_bytes)
                .is_some_and(|image| self.image.matches(&image, mask))
    }

    /// Moves on by one segment. One's complement sums do not simply count down where ID or
    /// checksum wrap: then nothing meets the expectation, and the full rules take over.
    #[inline(always)]
    fn advance(&mut self) {
        if self.step == 1 && (self.id == u16::MAX || self.ip_checksum == 0) {
            self.frame_bytes = usize::MAX;
        }
        self.seq = self.seq.wrapping_add(self.payload_bytes);
        self.id = self.id.wrapping_add(self.step);
        self.ip_checksum = self.ip_checksum.wrapping_sub(self.step);
    }
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u32 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field.map_or(0, |field| u32::from_be_bytes(*field))
}

#[inline(always)]
fn half(bytes: &[u8], at: usize) -> u16 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field.map_or(0, |field| u16::from_be_bytes(*field))
}
