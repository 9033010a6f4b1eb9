//! Taking a batch, and the short way of its frames.
//!
//! If a frame is plain, a look-up in the flow table and one compare decide; if it continues what
//! was appended to last, the compare alone (`run`). Everything else takes the full way.
//!
//! The short way exists once for each version of IP, chosen before anything else is read: what
//! is known at compile time need not be kept, and neither version pays for the other.

use alloc::vec::Vec;

use rxo_frame::{Frame, Instant, LinkKind};
use rxo_wire::{
    ETHERNET_HEADER_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Plain, TcpFlags, arch, checksum,
    ethertype,
};

use super::apply::flow_key;
use super::{Engine, packet_window};
use crate::expected::{Shape, V4, V6};
use crate::held::First;
use crate::{BypassReason, Deliveries, FlushReason};

/// Headers are asked for this many frames ahead: enough to hide a miss, few enough for the
/// processor's queue of outstanding lines.
const PREFETCH_FRAMES: u32 = 32;
/// Payloads, where they will be summed, are asked for this many frames ahead.
pub(super) const PAYLOAD_FRAMES: u32 = 2;
/// A header of 66 bytes (Ethernet, IPv4, TCP with timestamp) spans two lines wherever it starts.
const SECOND_LINE: usize = 64;
const PROTOCOL_TCP: u8 = 6;

impl<B: AsRef<[u8]>> Engine<B> {
    /// Takes all frames out of `batch`, delivering in between when there is no room.
    pub(super) fn take(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        sink: &mut impl FnMut(Deliveries<'_, B>),
    ) {
        self.counters.frames += batch.len() as u64;
        while !batch.is_empty() {
            let room = self.store.room().min(batch.len());
            if room == 0 {
                self.make_room(now, sink);
                continue;
            }
            let (from, to) = self.store.take_in(batch, room);
            self.take_all(from, to, now);
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

    /// Takes the frames in the slots from `from` to before `to`.
    fn take_all(&mut self, from: u32, to: u32, now: Instant) {
        let sums = !self.config.trust_checksums;
        let mut ahead = from;
        let mut slot = from;
        while slot < to {
            while ahead < to.min(slot + PREFETCH_FRAMES) {
                self.prefetch_headers(ahead);
                ahead += 1;
            }
            if sums && slot + PAYLOAD_FRAMES < to {
                self.prefetch_payload(slot + PAYLOAD_FRAMES);
            }
            let after = self.take_one(slot, to, now);
            self.packets_left = self.packets_left.wrapping_sub(after - slot);
            if self.packets_left == 0 {
                self.packets_left = packet_window(self.config.policy.hold);
                self.flush_all(FlushReason::PacketLimit, now);
            }
            slot = after;
        }
    }

    #[inline(always)]
    fn prefetch_headers(&self, slot: u32) {
        let bytes = self.store.bytes(slot);
        arch::prefetch(bytes, 0);
        arch::prefetch(bytes, SECOND_LINE);
    }

    /// Asks for the payload of the frame in `slot`, if its checksum will have to be summed.
    #[inline]
    fn prefetch_payload(&self, slot: u32) {
        let frame = self.store.frame(slot);
        if !frame.checksum.is_trusted() {
            arch::prefetch_all(frame.bytes());
        }
    }

    /// Takes the frame in `slot` and those after it that continue it, up to before `to`. Returns
    /// the slot after the last.
    #[inline(always)]
    fn take_one(&mut self, slot: u32, to: u32, now: Instant) -> u32 {
        let bytes = self.store.bytes(slot);
        let taken = match self.config.link {
            LinkKind::Ethernet => match ethertype(bytes) {
                Some(ETHERTYPE_IPV4) => self.take_plain::<V4>(slot, ETHERNET_HEADER_BYTES, to, now),
                Some(ETHERTYPE_IPV6) => self.take_plain::<V6>(slot, ETHERNET_HEADER_BYTES, to, now),
                _ => None,
            },
            LinkKind::RawIp => self.take_plain_ip(slot, to, now),
        };
        match taken {
            Some(after) => after,
            None => self.take_any(slot, to, now),
        }
    }

    #[inline(never)]
    fn take_plain_ip(&mut self, slot: u32, to: u32, now: Instant) -> Option<u32> {
        match self.store.bytes(slot).first()? >> 4 {
            4 => self.take_plain::<V4>(slot, 0, to, now),
            6 => self.take_plain::<V6>(slot, 0, to, now),
            _ => None,
        }
    }

    /// Takes the short way with a frame whose IP header begins at `network`, if it is plain and
    /// needs none of the rules that only the full way knows.
    #[inline(always)]
    fn take_plain<S: Shape>(
        &mut self,
        slot: u32,
        network: usize,
        to: u32,
        now: Instant,
    ) -> Option<u32> {
        let frame = self.store.frame(slot);
        let plain = S::plain(frame.bytes().get(network..)?)?;
        if plain.payload_bytes > self.short_payload_bytes || frame.gso.is_some() {
            return None;
        }
        let key = flow_key(plain.key, frame);
        if plain.payload_bytes == 0 {
            if !self.table.is_empty() {
                // A copy, so that the key itself need not be in memory.
                let escaping = key;
                self.flush_flow(&escaping, now);
            }
            self.deliver_untouched(slot, BypassReason::PureAck);
            return Some(slot + 1);
        }
        let hash = self.hasher.hash(&key);
        let found = self.table.find(&self.store.held, &key, hash);
        let held = found.map(|place| &self.store.held[usize::from(place)]);
        if let (Some(place), Some(held)) = (found, held)
            && held.next_seq == plain.seq
        {
            return self.continue_run::<S>(place, slot, to, now);
        }
        if !self.is_trusted(frame) && !self.is_intact::<S>(&plain, network, frame) {
            return None;
        }
        let arrived_at = frame.arrived_at;
        if let Some(place) = found {
            // Out of sequence: the first rule of all, so no other need be asked.
            self.flush_held(place, FlushReason::OutOfSequence, now);
        }
        let first = First {
            key,
            arrived_at,
            seq: plain.seq,
            payload_bytes: plain.payload_bytes,
            network: network as u16,
            transport: (network + S::IP_BYTES) as u16,
            header_bytes: network as u16 + plain.header_bytes as u16,
            flags: TcpFlags::ACK,
            version: S::VERSION,
            slot,
        };
        let place = self.start(first, hash, now);
        Some(self.run::<S>(place, slot, to, now))
    }

    /// Whether the TCP checksum of a plain segment is right. Reads its payload.
    #[inline(always)]
    fn is_intact<S: Shape>(&self, plain: &Plain, network: usize, frame: &Frame<B>) -> bool {
        let end = network + (plain.header_bytes + plain.payload_bytes) as usize;
        let segment = frame.bytes().get(network + S::IP_BYTES..end).unwrap_or_default();
        let pseudo_header = checksum::pseudo_header(&plain.key, PROTOCOL_TCP, segment.len() as u32);
        (self.config.summer.sum(segment) + pseudo_header).is_valid()
    }
}
