//! The full way of a frame, and acting on its verdict.

use alloc::vec::Vec;

use rxo_frame::{Frame, Instant};
use rxo_wire::{FlowKey, Malformed, Parsed, TcpSegment, Transport, Unparsed, checksum};

use super::prefetch::Lookahead;
use super::{Engine, packet_window};
use crate::held::Held;
use crate::table::Table;
use crate::verdict::Headers;
use crate::{BypassReason, Candidate, Deliveries, FlushReason, Verdict, candidate, verdict};

impl<B: AsRef<[u8]>> Engine<B> {
    /// Takes all frames out of `batch`, delivering in between when there is no room.
    pub(super) fn take(
        &mut self,
        batch: &mut Vec<Frame<B>>,
        now: Instant,
        sink: &mut impl FnMut(Deliveries<'_, B>),
    ) {
        self.counters.frames += batch.len() as u64;
        let mut frames = Lookahead::new(batch);
        while let Some(frame) = frames.next() {
            if self.store.is_full() {
                self.make_room(now, sink);
            }
            self.packets_left -= 1;
            if let Some(place) = self.take_one(frame, now) {
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

    /// Takes one frame. Returns where it is held, if it is.
    #[inline]
    fn take_one(&mut self, frame: Frame<B>, now: Instant) -> Option<u16> {
        let parsed = match self.read(&frame) {
            Ok(parsed) => parsed,
            Err(unparsed) => {
                self.bypass_unparsed(frame, unparsed, now);
                return None;
            }
        };
        match self.judge(&frame, &parsed) {
            Ok(tcp) => self.join(frame, &parsed, tcp, now),
            Err(reason) => {
                self.bypass(frame, &parsed, reason, now);
                None
            }
        }
    }

    /// Judges a frame by itself, its checksum last: that reads the payload.
    #[inline]
    fn judge<'a>(
        &self,
        frame: &Frame<B>,
        parsed: &'a Parsed,
    ) -> Result<&'a TcpSegment, BypassReason> {
        let tcp = candidate(parsed, &self.config.policy)?;
        if frame.gso.is_some() {
            return Err(BypassReason::AlreadyAggregated);
        }
        let trusted = self.config.trust_checksums || frame.checksum.is_trusted();
        if trusted || checksum::verify_transport(parsed, frame.bytes(), self.config.summer) {
            Ok(tcp)
        } else {
            Err(BypassReason::BadTcpChecksum)
        }
    }

    /// Judges a candidate against what its flow holds, and acts.
    #[inline]
    fn join(
        &mut self,
        frame: Frame<B>,
        parsed: &Parsed,
        tcp: &TcpSegment,
        now: Instant,
    ) -> Option<u16> {
        let candidate = Candidate { parsed, tcp, checksum: frame.checksum, vlan: frame.vlan };
        let key = flow_key(parsed, &frame);
        let hash = self.hasher.hash(&key);
        let found = self.table.find(&self.store.held, &key, hash);
        let held = found.map(|place| {
            let held = &self.store.held[usize::from(place)];
            let bytes = self.store.bytes(held.chain.tail);
            (held, Headers { held: bytes, candidate: frame.bytes() })
        });
        let verdict = verdict(held, candidate, &self.config.policy);
        match (verdict, found) {
            (Verdict::Append(close), Some(place)) => {
                self.append(place, frame, candidate, close, now)
            }
            (Verdict::FlushThenStart(reason, close), Some(place)) => {
                self.flush_held(place, reason, now);
                self.start(frame, candidate, key, close, now)
            }
            (Verdict::FlushThenBypass(flush, reason), Some(place)) => {
                self.flush_held(place, flush, now);
                self.deliver_untouched(frame, reason);
                None
            }
            (Verdict::Start(close), _) => self.start(frame, candidate, key, close, now),
            (Verdict::Bypass(reason), _) => {
                self.deliver_untouched(frame, reason);
                None
            }
            // A verdict that speaks of something held is only given when something is.
            (_, None) => self.start(frame, candidate, key, None, now),
        }
    }

    #[inline]
    fn start(
        &mut self,
        frame: Frame<B>,
        candidate: Candidate<'_>,
        key: FlowKey,
        close: Option<FlushReason>,
        now: Instant,
    ) -> Option<u16> {
        if let Some(reason) = close {
            self.counters.flush(reason, 1, now.since(frame.arrived_at).as_nanos() as u64);
            let slot = self.store.put(frame);
            self.store.ready_frame(slot);
            return None;
        }
        if self.table.is_full()
            && let Some(oldest) = self.table.oldest()
        {
            self.flush_held(oldest, FlushReason::Evicted, now);
        }
        self.oldest_arrival = match self.table.is_empty() {
            true => frame.arrived_at,
            false => self.oldest_arrival.min(frame.arrived_at),
        };
        let mut held = Held::start(key, candidate, frame.arrived_at);
        let slot = self.store.put(frame);
        held.chain.head = slot;
        held.chain.tail = slot;
        let place = self.store.hold(held);
        self.table.insert(&mut self.store.held, place, self.hasher.hash(&key));
        Some(place)
    }

    #[inline]
    fn append(
        &mut self,
        place: u16,
        frame: Frame<B>,
        candidate: Candidate<'_>,
        close: Option<FlushReason>,
        now: Instant,
    ) -> Option<u16> {
        let held = &mut self.store.held[usize::from(place)];
        held.append(candidate, &self.config.policy);
        let tail = held.chain.tail;
        let slot = self.store.put_after(tail, frame);
        self.store.held[usize::from(place)].chain.tail = slot;
        if let Some(reason) = close {
            self.flush_held(place, reason, now);
            return None;
        }
        self.table.touch(&mut self.store.held, place);
        Some(place)
    }

    /// Delivers a frame untouched, after whatever of its flow is held.
    fn bypass(&mut self, frame: Frame<B>, parsed: &Parsed, reason: BypassReason, now: Instant) {
        if !self.table.is_empty() {
            let key = flow_key(parsed, &frame);
            match parsed.transport {
                Transport::Tcp(_) => self.flush_flow(&key, now),
                Transport::Fragment => self.flush_addresses(&key, now),
                Transport::Udp(_) | Transport::Other(_) => {}
            }
        }
        self.deliver_untouched(frame, reason);
    }

    #[cold]
    fn bypass_unparsed(&mut self, frame: Frame<B>, unparsed: Unparsed, now: Instant) {
        if let Some(addresses) = unparsed.addresses {
            self.flush_addresses(&with_device_vlan(addresses, &frame), now);
        }
        let reason = match unparsed.why {
            Malformed::NotIp => BypassReason::NotIp,
            Malformed::Truncated => BypassReason::Truncated,
            Malformed::Version | Malformed::Length => BypassReason::Malformed,
        };
        self.deliver_untouched(frame, reason);
    }

    #[inline]
    fn deliver_untouched(&mut self, frame: Frame<B>, reason: BypassReason) {
        self.counters.bypass(reason);
        let slot = self.store.put(frame);
        self.store.ready_frame(slot);
    }

    #[inline]
    fn flush_flow(&mut self, key: &FlowKey, now: Instant) {
        if let Some(place) = self.table.find(&self.store.held, key, self.hasher.hash(key)) {
            self.flush_held(place, FlushReason::Order, now);
        }
    }

    /// Flushes every flow between these addresses: a fragment may belong to any of them. Walks
    /// all flows held.
    #[cold]
    fn flush_addresses(&mut self, key: &FlowKey, now: Instant) {
        let mut next = self.table.oldest();
        while let Some(place) = next {
            next = Table::newer_than(&self.store.held, place);
            if self.store.held[usize::from(place)].key.has_addresses_of(key) {
                self.flush_held(place, FlushReason::Order, now);
            }
        }
    }
}

#[inline]
fn flow_key<B>(parsed: &Parsed, frame: &Frame<B>) -> FlowKey {
    with_device_vlan(parsed.key, frame)
}

#[inline]
fn with_device_vlan<B>(key: FlowKey, frame: &Frame<B>) -> FlowKey {
    match frame.vlan {
        None => key,
        Some(tag) => key.on_device_vlan(tag.tci & 0x0fff),
    }
}
