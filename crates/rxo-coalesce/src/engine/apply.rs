//! The full way of a frame, and acting on its verdict.

use rxo_frame::{Frame, Instant};
use rxo_wire::{
    FlowHash, FlowKey, IpVersion, Malformed, Parsed, TcpSegment, Transport, Unparsed, checksum,
};

use super::Engine;
use crate::expected::{V4, V6};
use crate::held::First;
use crate::table::Table;
use crate::verdict::Last;
use crate::{BypassReason, Candidate, FlushReason, Verdict, candidate, verdict};

impl<B: AsRef<[u8]>> Engine<B> {
    /// Judges the frame in `slot` by all rules and acts, then goes on with those after it that
    /// continue it, up to before `to`. Returns the slot after the last.
    #[inline(never)]
    pub(super) fn take_any(&mut self, slot: u32, to: u32, now: Instant) -> u32 {
        let Some(place) = self.take_by_rules(slot, now) else { return slot + 1 };
        match self.store.held[usize::from(place)].version {
            IpVersion::V4 => self.run::<V4>(place, slot, to, now),
            IpVersion::V6 => self.run::<V6>(place, slot, to, now),
        }
    }

    /// Returns where the frame is held, if it is.
    fn take_by_rules(&mut self, slot: u32, now: Instant) -> Option<u16> {
        match self.read(self.store.bytes(slot)) {
            Ok(parsed) => match self.judge(slot, &parsed) {
                Ok(tcp) => self.join(slot, &parsed, tcp, now),
                Err(reason) => self.bypass(slot, &parsed, reason, now),
            },
            Err(unparsed) => self.bypass_unparsed(slot, unparsed, now),
        }
    }

    /// Judges a frame by itself, its checksum last: that reads the payload.
    fn judge<'a>(&self, slot: u32, parsed: &'a Parsed) -> Result<&'a TcpSegment, BypassReason> {
        let tcp = candidate(parsed, &self.config.policy)?;
        let frame = self.store.frame(slot);
        if frame.gso.is_some() {
            return Err(BypassReason::AlreadyAggregated);
        }
        if self.is_trusted(frame)
            || checksum::verify_transport(parsed, frame.bytes(), self.config.summer)
        {
            Ok(tcp)
        } else {
            Err(BypassReason::BadTcpChecksum)
        }
    }

    #[inline]
    pub(super) fn is_trusted(&self, frame: &Frame<B>) -> bool {
        self.config.trust_checksums || frame.checksum.is_trusted()
    }

    /// Judges a candidate against what its flow holds, and acts.
    fn join(&mut self, slot: u32, parsed: &Parsed, tcp: &TcpSegment, now: Instant) -> Option<u16> {
        let key = flow_key(parsed.key, self.store.frame(slot));
        let hash = self.hasher.hash(&key);
        let found = self.table.find(&self.store.held, &key, hash);
        let last = found.and_then(|place| self.last_of(place));
        let verdict = self.verdict(slot, parsed, tcp, found.zip(last.as_ref()));
        if let (Verdict::Append(close), Some(place), Some(last)) = (verdict, found, &last) {
            let held = &mut self.store.held[usize::from(place)];
            held.append(parsed, tcp, &last.0, &self.config.policy);
            return self.append(place, slot, close, now);
        }
        if let (Some(place), Some(reason)) = (found, flush_before(verdict)) {
            self.flush_held(place, reason, now);
        }
        match verdict {
            Verdict::Start(Some(close)) | Verdict::FlushThenStart(_, Some(close)) => {
                self.deliver_single(slot, close, now);
                None
            }
            Verdict::Bypass(reason) | Verdict::FlushThenBypass(_, reason) => {
                self.deliver_untouched(slot, reason);
                None
            }
            Verdict::Start(None) | Verdict::FlushThenStart(_, None) | Verdict::Append(_) => Some(
                self.start(first_of(parsed, tcp, key, self.store.frame(slot), slot), hash, now),
            ),
        }
    }

    /// The last segment that is held at `place`, read again: only what is unusual needs it.
    fn last_of(&self, place: u16) -> Option<(Parsed, TcpSegment)> {
        let held = &self.store.held[usize::from(place)];
        let parsed = self.read(self.store.bytes(held.chain.tail)).ok()?;
        match parsed.transport {
            Transport::Tcp(tcp) => Some((parsed, tcp)),
            Transport::Udp(_) | Transport::Fragment | Transport::Other(_) => None,
        }
    }

    fn verdict(
        &self,
        slot: u32,
        parsed: &Parsed,
        tcp: &TcpSegment,
        found: Option<(u16, &(Parsed, TcpSegment))>,
    ) -> Verdict {
        let frame = self.store.frame(slot);
        let candidate = Candidate {
            parsed,
            tcp,
            bytes: frame.bytes(),
            checksum: frame.checksum,
            vlan: frame.vlan,
        };
        let held = found.map(|(place, (parsed, tcp))| {
            let held = &self.store.held[usize::from(place)];
            let frame = self.store.frame(held.chain.tail);
            let last = Last {
                parsed,
                tcp,
                bytes: frame.bytes(),
                checksum: frame.checksum,
                vlan: frame.vlan,
            };
            (held, last)
        });
        verdict(held, candidate, &self.config.policy)
    }

    /// Holds the first segment of a flow and returns where.
    #[inline(always)]
    pub(super) fn start(&mut self, first: First, hash: FlowHash, now: Instant) -> u16 {
        if self.table.is_full()
            && let Some(oldest) = self.table.oldest()
        {
            self.flush_held(oldest, FlushReason::Evicted, now);
        }
        self.oldest_arrival = match self.table.is_empty() {
            true => first.arrived_at,
            false => self.oldest_arrival.min(first.arrived_at),
        };
        let place = self.store.free_place();
        self.table.insert(&mut self.store.held, place, hash);
        self.store.held[usize::from(place)].begin(first);
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
        self.store.chain_after(tail, slot);
        if let Some(reason) = close {
            self.flush_held(place, reason, now);
            return None;
        }
        self.table.touch(&mut self.store.held, place);
        Some(place)
    }

    /// Delivers a frame untouched, after whatever of its flow is held.
    fn bypass(
        &mut self,
        slot: u32,
        parsed: &Parsed,
        reason: BypassReason,
        now: Instant,
    ) -> Option<u16> {
        if !self.table.is_empty() {
            let key = flow_key(parsed.key, self.store.frame(slot));
            match (reason, parsed.transport) {
                // What changed the bytes may have changed the ports.
                (BypassReason::BadIpChecksum | BypassReason::BadTcpChecksum, _)
                | (_, Transport::Fragment) => self.flush_addresses(&key, now),
                (_, Transport::Tcp(_)) => self.flush_flow(&key, now),
                (_, Transport::Udp(_) | Transport::Other(_)) => {}
            }
        }
        self.deliver_untouched(slot, reason);
        None
    }

    fn bypass_unparsed(&mut self, slot: u32, unparsed: Unparsed, now: Instant) -> Option<u16> {
        if let Some(addresses) = unparsed.addresses {
            let key = flow_key(addresses, self.store.frame(slot));
            self.flush_addresses(&key, now);
        }
        let reason = match unparsed.why {
            Malformed::NotIp => BypassReason::NotIp,
            Malformed::Truncated => BypassReason::Truncated,
            Malformed::Version | Malformed::Length => BypassReason::Malformed,
        };
        self.deliver_untouched(slot, reason);
        None
    }

    #[inline]
    pub(super) fn deliver_untouched(&mut self, slot: u32, reason: BypassReason) {
        self.counters.bypass(reason);
        self.store.ready_frame(slot);
    }

    /// Delivers a candidate that is not to be held, alone.
    fn deliver_single(&mut self, slot: u32, reason: FlushReason, now: Instant) {
        let waited_ns = now.nanos_since(self.store.frame(slot).arrived_at);
        self.counters.flush(reason, 1, waited_ns);
        self.store.ready_frame(slot);
    }

    #[inline]
    pub(super) fn flush_flow(&mut self, key: &FlowKey, now: Instant) {
        if let Some(place) = self.table.find(&self.store.held, key, self.hasher.hash(key)) {
            self.flush_held(place, FlushReason::Order, now);
        }
    }

    /// Flushes every flow between these addresses, for a frame that may belong to any of them.
    /// Walks all flows held.
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

/// What is held once this segment of the full way is, alone.
fn first_of<B>(
    parsed: &Parsed,
    tcp: &TcpSegment,
    key: FlowKey,
    frame: &Frame<B>,
    slot: u32,
) -> First {
    First {
        key,
        arrived_at: frame.arrived_at,
        seq: tcp.seq,
        payload_bytes: parsed.payload_bytes(),
        network: parsed.network as u16,
        transport: parsed.transport_at as u16,
        header_bytes: parsed.payload as u16,
        flags: tcp.flags,
        version: parsed.ip.version,
        slot,
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
