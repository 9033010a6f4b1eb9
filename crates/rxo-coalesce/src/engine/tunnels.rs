//! TCP inside tunnels, by all rules.
//!
//! Separate from the tiers of TCP, so that these carry nothing of it: a packet of a tunnel comes here when they have
//! left it. What is inside is judged as any segment is; [`crate::tunnels`] judges what stands around it. A flow inside
//! a tunnel has a key of its own ([`FlowKey::in_tunnel`]).

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::tunnel::Tunnel;
use rxo_wire::{FlowKey, Parsed, TcpSegment, Transport, checksum, tcp};

use super::Engine;
use super::batch::Batch;
use crate::held::Segment;
use crate::single::Starts;
use crate::tunnels::{self, Tunnelled, outer_rules};
use crate::verdict::apart;
use crate::{BypassReason, Candidate, Kind, Verdict, candidate, verdict};

/// What all flows inside tunnels have in common where hosts are looked up: a packet that cannot be read may be of any of
/// them.
const IN_TUNNELS: FlowKey = FlowKey::NOBODY.in_tunnel(Tunnel::Vxlan, 0);

/// What a flow is found by if a packet may belong to any flow between its hosts.
pub(super) fn hosts(key: &FlowKey) -> FlowKey {
    if key.is_in_tunnel() { IN_TUNNELS } else { key.without_ports() }
}

impl<B: FrameBuffer> Engine<B> {
    /// The tunnel of a packet, if the policy coalesces inside it.
    #[inline(always)]
    pub(super) fn tunnel_of(&self, parsed: &Parsed) -> Option<Tunnel> {
        match parsed.transport {
            Transport::Udp(_) if self.takes_tunnels => {
                Tunnel::of_port(parsed.key.destination_port())
            }
            _ => None,
        }
    }

    /// Takes the packet of `tunnel` in `slot`, whose own headers are `outer`.
    #[inline(never)]
    pub(super) fn take_tunnelled(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        outer: &Parsed,
        tunnel: Tunnel,
    ) {
        let frame = batch.frame(slot);
        let policy = &self.config.policy;
        let read = match frame.gso {
            // It may be several packets of the tunnel.
            Some(_) => Err(BypassReason::AlreadyAggregated),
            None => tunnels::read(frame.bytes(), outer, tunnel, policy),
        };
        let found = match read {
            Ok(found) => found,
            Err(reason) => {
                self.flush_tunnels(slot);
                return self.bypass(frame, slot, outer, reason);
            }
        };
        match self.judge_inside(frame, outer, &found) {
            Ok(tcp) => {
                let candidate = Candidate::new(&found.inside.parsed, &tcp, frame);
                self.join_inside(batch, slot, (&found, &candidate));
            }
            Err(reason) => {
                self.make_way(reason, &found.inside.parsed.key, slot);
                self.deliver_untouched(slot, Starts::UNKNOWN, reason);
            }
        }
    }

    /// Judges a segment inside a tunnel by itself, the checksums last. A status other than partial says nothing of the
    /// inner checksum: devices verify one, and do not say which.
    fn judge_inside(
        &self,
        frame: &Frame<B>,
        outer: &Parsed,
        Tunnelled { inside, .. }: &Tunnelled,
    ) -> Result<TcpSegment, BypassReason> {
        let (parsed, policy) = (&inside.parsed, &self.config.policy);
        let tcp = *candidate(parsed, policy)?;
        outer_rules(outer, parsed, policy)?;
        if frame.checksum.is_elsewhere(parsed.at.transport as usize, tcp::CHECKSUM_AT as u16) {
            return Err(BypassReason::ChecksumElsewhere);
        }
        if self.config.trust_checksums {
            return Ok(tcp);
        }
        let bytes = frame.bytes();
        let is_known = frame.checksum.is_partial();
        if !is_known && !checksum::verify_transport(parsed, bytes, self.config.summer) {
            return Err(BypassReason::BadTcpChecksum);
        }
        if !inside.outer_checksum_holds(bytes, outer) {
            return Err(BypassReason::BadUdpChecksum);
        }
        Ok(tcp)
    }

    /// Judges a candidate inside a tunnel against what its flow holds, and acts.
    fn join_inside(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        (found, candidate): (&Tunnelled, &Candidate<'_>),
    ) {
        let key = found.inside.parsed.key;
        let flow = self.hasher.hash(&key);
        let mut segment = Segment::of(candidate, (key, flow), batch.frame(slot), slot);
        let place = self.find_alike(&key, flow, Kind::Data);
        let policy = &self.config.policy;
        let held = place.map(|place| &self.store.held[usize::from(place)]);
        let last = held.and_then(|held| self.last_inside(batch.frame(held.chain.tail)));
        let mut verdict = verdict(held.zip(last.as_ref()), candidate, policy);
        if let (Verdict::Append(_), Some(held), Some(last)) = (verdict, held, &last) {
            segment.id_step = candidate.ip.id.wrapping_sub(last.ip.id);
            let first = batch.frame(held.chain.head).bytes();
            if let Some(flush) = found.mismatch((held, first, last.bytes), candidate, policy) {
                verdict = apart(flush, candidate, policy);
            }
        }
        self.counters.tunnelled += 1;
        if !matches!(verdict, Verdict::Append(_)) {
            self.counters.tunnelled_deliveries += 1;
        }
        if let Some(place) = self.apply(verdict, place, &segment) {
            self.store.held[usize::from(place)].around = found.named;
        }
    }

    /// The segment inside the frame, which is held, read again.
    fn last_inside<'a>(&self, frame: &'a Frame<B>) -> Option<Candidate<'a>> {
        let outer = self.read(frame.bytes()).ok()?;
        let inside = self.tunnel_of(&outer)?.inside(frame.bytes(), &outer)?;
        let Transport::Tcp(tcp) = &inside.parsed.transport else { return None };
        Some(Candidate::new(&inside.parsed, tcp, frame))
    }

    /// Flushes every flow inside a tunnel, for the frame in `slot`, which may hide a segment of any of them.
    pub(super) fn flush_tunnels(&mut self, slot: u32) {
        if self.takes_tunnels {
            self.flush_addresses(&IN_TUNNELS, slot);
        }
    }
}
