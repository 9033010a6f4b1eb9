//! Taking a batch, and the short way of its frames.
//!
//! A frame moves once, from the batch into its slot. If it is plain, a flow table look-up and one
//! compare decide; if it continues what was appended to last, the compare alone (`run`). Everything
//! else takes the full way.

use alloc::vec::Vec;

use rxo_frame::{Frame, Instant, LinkKind};
use rxo_wire::{Plain, TcpFlags, checksum, plain, plain_ip};

use super::apply::flow_key;
use super::intake::Intake;
use super::{Engine, packet_window};
use crate::held::Held;
use crate::{BypassReason, Deliveries, FlushReason};

impl<B: AsRef<[u8]>> Engine<B> {
    /// Takes all frames out of `batch`, delivering in between when there is no room.
    pub(super) fn take(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        sink: &mut impl FnMut(Deliveries<'_, B>),
    ) {
        self.counters.frames += batch.len() as u64;
        let mut frames = Intake::new(batch);
        while let Some(frame) = frames.next() {
            if self.store.is_full() {
                self.make_room(now, sink);
            }
            self.packets_left -= 1;
            let slot = self.store.put(frame);
            self.take_one(slot, &mut frames, now);
            if self.packets_left == 0 {
                self.packets_left = packet_window(self.config.policy.hold);
                self.flush_all(FlushReason::PacketLimit, now);
            }
        }
    }

    /// Every slot is in use: what is ready goes to the sink; if nothing is, the least recently
    /// used flow is flushed first.
    #[cold]
    fn make_room(&mut self, now: Instant, sink: &mut impl FnMut(Deliveries<'_, B>)) {
        if self.store.ready.is_empty()
            && let Some(oldest) = self.table.oldest()
        {
            self.flush_held(oldest, FlushReason::Memory, now);
        }
        self.deliver(sink);
    }

    /// Takes the frame in `slot`, and those of `frames` that continue it.
    #[inline(always)]
    fn take_one(&mut self, slot: u32, frames: &mut Intake<'_, B>, now: Instant) {
        let frame = self.store.frame(slot);
        let segment = match self.config.link {
            LinkKind::Ethernet => plain(frame.bytes()),
            LinkKind::RawIp => plain_ip(frame.bytes()),
        };
        let place = match segment {
            Some(segment) if self.may_shorten(&segment, frame) => {
                self.take_plain(slot, &segment, frames, now)
            }
            _ => self.take_any(slot, now),
        };
        if let Some(place) = place {
            self.run(place, frames, now);
        }
    }

    /// Whether a plain segment needs none of the rules that only the full way knows.
    #[inline(always)]
    fn may_shorten(&self, segment: &Plain, frame: &Frame<B>) -> bool {
        let policy = &self.config.policy;
        let fits = segment.payload_bytes <= policy.buffer_bytes
            && segment.payload_bytes + segment.payload - segment.network <= policy.max_bytes;
        policy.coalesce && frame.gso.is_none() && fits && policy.max_segments > 1
    }

    /// Takes a plain segment. Returns where it is held, when frames may continue it.
    #[inline(always)]
    fn take_plain(
        &mut self,
        slot: u32,
        segment: &Plain,
        frames: &mut Intake<'_, B>,
        now: Instant,
    ) -> Option<u16> {
        let frame = self.store.frame(slot);
        let (arrived_at, is_trusted) = (frame.arrived_at, self.is_trusted(frame));
        let key = flow_key(segment.key, frame);
        if segment.payload_bytes == 0 {
            if !self.table.is_empty() {
                self.flush_flow(&key, now);
            }
            self.deliver_untouched(slot, BypassReason::PureAck);
            return None;
        }
        let hash = self.hasher.hash(&key);
        match self.table.find(&self.store.held, &key, hash) {
            Some(place) if self.run_from(place, Some(slot), frames, now) => None,
            None if is_trusted || self.is_intact(slot, segment) => {
                let held = Held::start(segment, key, TcpFlags::ACK, arrived_at, slot);
                Some(self.start(held, hash, now))
            }
            _ => self.take_any(slot, now),
        }
    }

    /// Whether the TCP checksum of the plain segment in `slot` is right. Reads its payload.
    #[inline]
    fn is_intact(&self, slot: u32, segment: &Plain) -> bool {
        let end = segment.payload + segment.payload_bytes;
        let bytes = self.store.bytes(slot).get(segment.transport_at as usize..end as usize);
        let segment_bytes = end - segment.transport_at;
        let pseudo_header = checksum::pseudo_header(&segment.key, PROTOCOL_TCP, segment_bytes);
        bytes.is_some_and(|bytes| (self.config.summer.sum(bytes) + pseudo_header).is_valid())
    }
}

const PROTOCOL_TCP: u8 = 6;
