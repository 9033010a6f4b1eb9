//! Taking a batch, and the short way of its frames.
//!
//! A frame moves once, from the batch into its slot. If it is plain, a flow table look-up and one
//! compare decide; if it continues what was appended to last, the compare alone (`run`). Everything
//! else takes the full way.

use alloc::vec::Vec;

use rxo_frame::{Frame, Instant, LinkKind};
use rxo_wire::{FlowKey, Plain, TcpFlags, checksum, plain, plain_ip};

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
        while let Some(frame) = frames.peek() {
            if self.store.is_full() {
                self.make_room(now, sink);
                continue;
            }
            let segment = self.short_way(frame);
            let Some(slot) = frames.next().map(|frame| self.store.put(frame)) else { break };
            self.packets_left -= 1;
            let place = match segment {
                Some(segment) => self.take_plain(slot, &segment, &mut frames, now),
                None => self.take_any(slot, now),
            };
            if let Some(place) = place {
                self.run(place, &mut frames, now);
            }
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

    /// Reads a frame that needs none of the rules that only the full way knows.
    #[inline(always)]
    fn short_way(&self, frame: &Frame<B>) -> Option<Short> {
        let plain = match self.config.link {
            LinkKind::Ethernet => plain(frame.bytes()),
            LinkKind::RawIp => plain_ip(frame.bytes()),
        }?;
        let is_short = plain.payload_bytes <= self.short_payload_bytes && frame.gso.is_none();
        is_short.then(|| Short {
            key: flow_key(plain.key, frame),
            arrived_at: frame.arrived_at,
            is_trusted: self.is_trusted(frame),
            plain,
        })
    }

    /// Takes a plain segment. Returns where it is held, when frames may continue it.
    #[inline(always)]
    fn take_plain(
        &mut self,
        slot: u32,
        segment: &Short,
        frames: &mut Intake<'_, B>,
        now: Instant,
    ) -> Option<u16> {
        let Short { key, plain, .. } = segment;
        if plain.payload_bytes == 0 {
            if !self.table.is_empty() {
                self.flush_flow(key, now);
            }
            self.deliver_untouched(slot, BypassReason::PureAck);
            return None;
        }
        let hash = self.hasher.hash(key);
        match self.table.find(&self.store.held, key, hash) {
            Some(place) if self.run_from(place, Some(slot), frames, now) => None,
            None if segment.is_trusted || self.is_intact(slot, plain) => {
                let held = Held::start(plain, *key, TcpFlags::ACK, segment.arrived_at, slot);
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

/// A frame for the short way, read.
struct Short {
    /// Its flow, the device's VLAN tag included.
    key: FlowKey,
    arrived_at: Instant,
    is_trusted: bool,
    plain: Plain,
}

const PROTOCOL_TCP: u8 = 6;
