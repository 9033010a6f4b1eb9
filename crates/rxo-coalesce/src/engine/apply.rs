//! The full way of a frame, and acting on its verdict.

use rxo_frame::{Frame, Instant};
use rxo_wire::{
    FlowHash, FlowKey, IpVersion, Malformed, Parsed, TcpSegment, Transport, Unparsed, checksum,
};

use super::Engine;
use super::batch::Batch;
use crate::expected::{V4, V6};
use crate::held::First;
use crate::pairs::Met;
use crate::single::Starts;
use crate::store::Store;
use crate::{BypassReason, Candidate, FlushReason, Verdict, candidate, verdict};

impl<B: AsRef<[u8]>> Engine<B> {
    /// Judges the frame in `slot` by all rules and acts, then goes on with those after it that
    /// continue it. Returns the slot after the last.
    #[inline(never)]
    pub(super) fn take_any(&mut self, batch: Batch<'_, B>, slot: u32) -> u32 {
        let Some(place) = self.take_by_rules(batch, slot) else { return slot + 1 };
        match self.store.held[usize::from(place)].version {
            IpVersion::V4 => self.run::<V4>(batch, place, slot),
            IpVersion::V6 => self.run::<V6>(batch, place, slot),
        }
    }

    /// Returns where the frame is held, if it is.
    fn take_by_rules(&mut self, batch: Batch<'_, B>, slot: u32) -> Option<u16> {
        let frame = batch.frame(slot);
        match self.read(frame.bytes()) {
            Ok(parsed) if self.aggregates_ack(&parsed) => {
                self.take_ack(batch, slot, &parsed);
                None
            }
            Ok(parsed) => match self.judge(frame, &parsed) {
                Ok(tcp) => self.join(batch, slot, &parsed, tcp),
                Err(reason) => self.bypass(batch, slot, &parsed, reason),
            },
            Err(unparsed) => self.bypass_unparsed(batch, slot, unparsed),
        }
    }

    /// Judges a frame by itself, its checksum last: that reads the payload.
    fn judge<'a>(
        &self,
        frame: &Frame<B>,
        parsed: &'a Parsed,
    ) -> Result<&'a TcpSegment, BypassReason> {
        let tcp = candidate(parsed, &self.config.policy)?;
        if frame.gso.is_some() {
            return Err(BypassReason::AlreadyAggregated);
        }
        if self.is_intact(frame, parsed) { Ok(tcp) } else { Err(BypassReason::BadTcpChecksum) }
    }

    /// Whether the TCP checksum of a segment is right, or trusted. Reads the payload if it is not trusted.
    pub(super) fn is_intact(&self, frame: &Frame<B>, parsed: &Parsed) -> bool {
        self.is_trusted(frame)
            || checksum::verify_transport(parsed, frame.bytes(), self.config.summer)
    }

    #[inline]
    pub(super) fn is_trusted(&self, frame: &Frame<B>) -> bool {
        self.config.trust_checksums || frame.checksum.is_trusted()
    }

    /// Judges a candidate against what its flow holds, and acts.
    fn join(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        parsed: &Parsed,
        tcp: &TcpSegment,
    ) -> Option<u16> {
        let frame = batch.frame(slot);
        if self.holds_no_data() && self.table.is_empty() && self.memory.is_off() {
            // Whose it is changes nothing.
            if let Verdict::Start(Some(close)) = self.verdict(batch, frame, (parsed, tcp), None) {
                self.deliver_single(batch, slot, Starts::of(parsed), close);
                return None;
            }
        }
        let key = flow_key(parsed.key, frame);
        let hash = self.hasher.hash(&key);
        let found = self.table.find(&self.store.held, &key, hash);
        let last = found.and_then(|place| self.last_of(batch, place));
        let verdict = self.verdict(batch, frame, (parsed, tcp), found.zip(last.as_ref()));
        if let (Verdict::Append(close), Some(place), Some(last)) = (verdict, found, &last) {
            let held = &mut self.store.held[usize::from(place)];
            held.append(parsed, tcp, &last.0, &self.config.policy);
            self.note_more_data(place, frame);
            return self.append(place, slot, close, self.now);
        }
        if let (Some(place), Some(reason)) = (found, flush_before(verdict)) {
            self.flush_held(place, reason, self.now);
        }
        match verdict {
            Verdict::Start(Some(close)) | Verdict::FlushThenStart(_, Some(close)) => {
                self.deliver_single(batch, slot, Starts::of(parsed), close);
                self.memory.raise(hash, tcp.ack);
                None
            }
            Verdict::Bypass(reason) | Verdict::FlushThenBypass(_, reason) => {
                self.deliver_untouched(slot, Starts::of(parsed), reason);
                self.memory.raise(hash, tcp.ack);
                None
            }
            Verdict::Start(None) | Verdict::FlushThenStart(_, None) | Verdict::Append(_) => {
                let first = First::of(parsed, tcp, key, frame, slot);
                let place = self.start(first, hash, self.now);
                self.note_data(hash, place, frame);
                Some(place)
            }
        }
    }

    /// Whether every aggregate is full with its first segment.
    const fn holds_no_data(&self) -> bool {
        self.config.policy.max_segments < 2
    }

    /// The last segment that is held at `place`, read again: only what is unusual needs it.
    pub(super) fn last_of(&self, batch: Batch<'_, B>, place: u16) -> Option<(Parsed, TcpSegment)> {
        let held = &self.store.held[usize::from(place)];
        let parsed = self.read(batch.frame(held.chain.tail).bytes()).ok()?;
        match parsed.transport {
            Transport::Tcp(tcp) => Some((parsed, tcp)),
            Transport::Udp(_) | Transport::Fragment | Transport::Other(_) => None,
        }
    }

    fn verdict(
        &self,
        batch: Batch<'_, B>,
        frame: &Frame<B>,
        (parsed, tcp): (&Parsed, &TcpSegment),
        found: Option<(u16, &(Parsed, TcpSegment))>,
    ) -> Verdict {
        let candidate = Candidate::new(parsed, tcp, frame);
        let held = found.map(|(place, (parsed, tcp))| {
            let held = &self.store.held[usize::from(place)];
            (held, Candidate::new(parsed, tcp, batch.frame(held.chain.tail)))
        });
        verdict(held, candidate, &self.config.policy)
    }

    /// Holds the first segment of a flow and returns where.
    #[inline(always)]
    pub(super) fn start(&mut self, first: First, hash: FlowHash, now: Instant) -> u16 {
        if self.table.is_full()
            && let Some(oldest) = self.store.links.oldest()
        {
            self.flush_held(oldest, FlushReason::Evicted, now);
        }
        self.oldest_arrival = match self.table.is_empty() {
            true => first.arrived_at,
            false => self.oldest_arrival.min(first.arrived_at),
        };
        let place = self.store.free_place();
        self.store.links.hold(first.slot, place);
        let held = &mut self.store.held[usize::from(place)];
        self.table.insert(held, place, hash);
        held.begin(first);
        place
    }

    fn append(
        &mut self,
        place: u16,
        slot: u32,
        close: Option<FlushReason>,
        now: Instant,
    ) -> Option<u16> {
        let chain = &mut self.store.held[usize::from(place)].chain;
        let tail = core::mem::replace(&mut chain.tail, slot);
        self.store.links.append(tail, slot, place);
        if let Some(reason) = close {
            self.flush_held(place, reason, now);
            return None;
        }
        Some(place)
    }

    /// Delivers a frame untouched, after whatever of its flow is held.
    #[inline(always)]
    pub(super) fn bypass(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        parsed: &Parsed,
        reason: BypassReason,
    ) -> Option<u16> {
        if !self.is_idle() || !self.memory.is_off() {
            let key = flow_key(parsed.key, batch.frame(slot));
            let now = self.now;
            match (reason, parsed.transport) {
                // What changed the bytes may have changed the ports.
                (BypassReason::BadIpChecksum | BypassReason::BadTcpChecksum, _) => {
                    self.flush_addresses(&key, slot);
                }
                // A segment of any flow between these hosts, or of two others.
                (
                    BypassReason::Fragment
                    | BypassReason::UnknownHeader
                    | BypassReason::ExtensionHeader,
                    transport,
                ) => {
                    self.flush_addresses(&key, slot);
                    self.memory.doubt(self.pair(&key));
                    // What it acknowledges can be read, and whoever says less later was overtaken.
                    if let (Transport::Tcp(tcp), false) = (transport, self.memory.is_off()) {
                        self.doubt(batch.frame(slot), parsed, &tcp);
                    }
                }
                (_, Transport::Tcp(tcp)) => {
                    self.flush_flow(&key, now);
                    if !self.memory.is_off() {
                        self.doubt(batch.frame(slot), parsed, &tcp);
                    }
                }
                (_, Transport::Udp(_) | Transport::Other(_) | Transport::Fragment) => {}
            }
        }
        self.deliver_untouched(slot, Starts::of(parsed), reason);
        None
    }

    fn bypass_unparsed(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        unparsed: Unparsed,
    ) -> Option<u16> {
        if let Some(addresses) = unparsed.addresses {
            let key = flow_key(addresses, batch.frame(slot));
            self.flush_addresses(&key, slot);
        }
        let reason = match unparsed.why {
            Malformed::NotIp => BypassReason::NotIp,
            Malformed::Truncated => BypassReason::Truncated,
            Malformed::Version | Malformed::Length => BypassReason::Malformed,
        };
        self.deliver_untouched(slot, Starts::UNKNOWN, reason);
        None
    }

    #[inline]
    pub(super) fn deliver_untouched(&mut self, slot: u32, at: Starts, reason: BypassReason) {
        self.counters.bypass(reason);
        self.store.ready_frame(slot, at);
    }

    /// Delivers a candidate that is not to be held, alone.
    fn deliver_single(&mut self, batch: Batch<'_, B>, slot: u32, at: Starts, reason: FlushReason) {
        let waited_ns = self.now.nanos_since(batch.frame(slot).arrived_at);
        self.counters.flush(reason, 1, waited_ns);
        self.store.ready_intact(slot, at);
    }

    /// Flushes what the flow holds, for a frame of it that is delivered as it is.
    #[inline(always)]
    pub(super) fn flush_flow(&mut self, key: &FlowKey, now: Instant) {
        if let Some(place) = self.table.find(&self.store.held, key, self.hasher.hash(key)) {
            self.flush_held(place, FlushReason::Order, now);
        }
    }

    /// Flushes every flow between these addresses, for the frame in `slot`, which may belong to any of
    /// them. Looks at no other flow but those that are new since the last time.
    pub(super) fn flush_addresses(&mut self, key: &FlowKey, slot: u32) {
        if self.table.is_empty() {
            return;
        }
        let (pair, hasher) = (self.pair(key), self.hasher);
        let Store { pairs, links, held, .. } = &mut self.store;
        let from = pairs.look_up_to(slot);
        for place in links.used_between(from, slot) {
            pairs.note(place, hasher.hash(&held[usize::from(place)].key.without_ports()));
        }
        pairs.search(pair, |place| {
            let held = &held[usize::from(place)];
            let tail = held.chain.tail;
            if tail >= slot || !links.is_last_of(tail, place) {
                Met::Gone
            } else if held.key.has_addresses_of(key) {
                Met::Meant(tail)
            } else {
                Met::Other
            }
        });
        while let Some(place) = self.store.pairs.next_found() {
            self.flush_held(place, FlushReason::Order, self.now);
        }
    }

    /// The hash that names the two hosts of a flow, on its VLANs.
    pub(super) fn pair(&self, key: &FlowKey) -> FlowHash {
        self.hasher.hash(&key.without_ports())
    }
}

/// Why what is held has to go first, if it has to.
const fn flush_before(verdict: Verdict) -> Option<FlushReason> {
    match verdict {
        Verdict::FlushThenStart(reason, _) | Verdict::FlushThenBypass(reason, _) => Some(reason),
        Verdict::Start(_) | Verdict::Append(_) | Verdict::Bypass(_) => None,
    }
}

/// The key of a flow whose frame may have lost a VLAN tag to the device.
#[inline(always)]
pub(super) fn flow_key<B>(key: FlowKey, frame: &Frame<B>) -> FlowKey {
    match frame.vlan {
        None => key,
        Some(tag) => key.on_device_vlan(tag.tci & 0x0fff),
    }
}
