//! Coalesces TCP inside tunnels, by all rules.
//!
//! This module receives the tunnel packets, after the tiers for TCP could not decide on them, so those tiers
//! contain no code for tunnels. The inner segment is subject to the same rules as any segment; [`crate::tunnels`]
//! has the rules for the outer headers. A flow inside a tunnel has its own key
//! ([`FlowKey::in_tunnel`](rxo_wire::FlowKey::in_tunnel)). The next expected packets of a held flow are
//! recognised by one compare of the inner and one of the outer headers.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::tunnel::Tunnel;
use rxo_wire::{Parsed, TcpSegment, Transport, checksum, tcp};

use super::Engine;
use super::apply::Taken;
use super::checksums::Verification;
use super::cursor::Cursor;
use crate::expected::Expected;
use crate::held::Segment;
use crate::shape::{Shape, Start};
use crate::single::Starts;
use crate::tunnels::{self, Around, Tunnelled, outer_rules};
use crate::verdict::{regular_step, separate};
use crate::{BypassReason, Candidate, FlushReason, Kind, Verdict, candidate, verdict};

impl<B: FrameBuffer> Engine<B> {
    /// Returns the tunnel of a packet; `None` if the packet is in no tunnel or the policy does not coalesce
    /// inside tunnels.
    #[inline]
    pub(super) fn tunnel_of(&self, parsed: &Parsed) -> Option<Tunnel> {
        match parsed.transport {
            Transport::Udp(_) if self.config.policy.takes_tunnels() => {
                Tunnel::of_port(parsed.key.destination_port())
            }
            _ => None,
        }
    }

    /// Receives a packet of `tunnel`, with the outer headers `outer`.
    #[inline(never)]
    pub(super) fn take_tunnelled(
        &mut self,
        at: Cursor<'_, B>,
        outer: &Parsed,
        tunnel: Tunnel,
    ) -> Taken {
        let (frame, slot) = (at.held(at.slot()), at.slot());
        let policy = &self.config.policy;
        let read = match frame.gso {
            // A GSO frame may contain several packets of the tunnel.
            Some(_) => Err(BypassReason::AlreadyAggregated),
            None => tunnels::read(frame.bytes(), outer, tunnel, policy),
        };
        let found = match read {
            Ok(found) => found,
            Err(reason) => {
                self.flush_tunnels(slot);
                self.bypass(frame, slot, outer, reason);
                return Taken::Left;
            }
        };
        match self.judge_inside(frame, outer, &found) {
            Ok(tcp) => {
                let candidate = Candidate::new(&found.inside.parsed, &tcp, frame);
                Taken::of(self.join_inside(at, (&found, &candidate)))
            }
            Err(reason) => {
                self.make_way(reason, &found.inside.parsed.key, slot);
                self.deliver_untouched(slot, Starts::UNKNOWN, reason);
                Taken::Left
            }
        }
    }

    /// Applies the static rules to a segment inside a tunnel, and verifies the checksums last. Only the status
    /// `Partial` refers to the inner checksum; otherwise a device has verified one of the two checksums and does
    /// not report which.
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

    /// Decides on a candidate inside a tunnel by the state of its flow, and applies the verdict. Returns the
    /// index at which it is held, or `None` if it was delivered.
    fn join_inside(
        &mut self,
        at: Cursor<'_, B>,
        (found, candidate): (&Tunnelled, &Candidate<'_>),
    ) -> Option<u16> {
        let key = found.inside.parsed.key;
        let hash = self.hasher.hash(&key);
        let mut segment = Segment::of(candidate, (key, hash), at.held(at.slot()), at.slot());
        let flow = self.find_alike(&key, hash, Kind::Data);
        let policy = &self.config.policy;
        let held = flow.map(|flow| &self.store.held[usize::from(flow)]);
        let last = held.and_then(|held| self.last_inside(at.held(held.chain.tail)));
        let mut verdict = verdict(held.zip(last.as_ref()), candidate, policy);
        if let (Verdict::Append(_), Some(held), Some(last)) = (verdict, held, &last) {
            segment.id_step = regular_step(last, candidate);
            let first = at.held(held.chain.head).bytes();
            if let Some(flush) = found.mismatch((held, first, last.bytes), candidate, policy) {
                verdict = separate(flush, candidate, policy);
            }
        }
        self.counters.tunnelled += 1;
        if !matches!(verdict, Verdict::Append(_)) {
            self.counters.tunnelled_deliveries += 1;
        }
        let flow = self.apply(verdict, flow, &segment)?;
        self.store.held[usize::from(flow)].around = found.named;
        Some(flow)
    }

    /// Appends to `flow` the tunnel packet at `at` and the packets behind it, up to the first that is not
    /// expected next. Returns the slot behind the last appended packet.
    pub(super) fn run_inside<S: Shape>(&mut self, mut at: Cursor<'_, B>, flow: u16) -> u32 {
        // The frame before is received but not yet counted, hence 1 less.
        let most = self.packets_left.saturating_sub(1).min(at.upcoming().len() as u32);
        let last = at.slot() + most;
        while at.slot() < last
            && let Some(id_step) = self.next_inside::<S>(at, flow)
        {
            self.counters.tunnelled += 1;
            let held = &mut self.store.held[usize::from(flow)];
            held.append_run(1, id_step);
            let is_full = held.segments >= u32::from(self.config.policy.max_segments);
            let close = is_full.then_some(FlushReason::SegmentLimit);
            let is_held = self.append(flow, at.slot(), 1, close).is_some();
            at = at.next();
            if !is_held {
                break;
            }
        }
        at.slot()
    }

    /// Returns the increment of the inner IPv4 ID if the packet at `at` is the next expected one of
    /// `flow`; otherwise `None`.
    fn next_inside<S: Shape>(&self, at: Cursor<'_, B>, flow: u16) -> Option<u16> {
        let held = &self.store.held[usize::from(flow)];
        let (last, next) = (at.held(held.chain.tail), at.frame()?);
        let (mut room, network) = (S::Headers::ZEROS, usize::from(held.at.network()));
        let expected =
            Expected::<S>::after::<B, false>(held, last, next.bytes(), network, &mut room)?;
        let policy = &self.config.policy;
        if expected.steps() == 0
            || !expected.matches::<B, false, false>(next)
            || !held.has_room(policy)
        {
            return None;
        }
        let (first, around) = (at.held(held.chain.head), Around::of(held.around)?);
        let frames = [first, last, next].map(Frame::bytes);
        if !around.is_continued(held, frames, policy) {
            return None;
        }
        let is_intact = self.config.trust_checksums
            || ((next.checksum.is_partial()
                || Verification::of(held).holds(next, self.config.summer))
                && around.has_right_checksum(held, next.bytes()));
        is_intact.then_some(expected.id_step())
    }

    /// Parses the inner segment of a held frame again; `None` if it cannot be parsed.
    fn last_inside<'a>(&self, frame: &'a Frame<B>) -> Option<Candidate<'a>> {
        let outer = self.config.read(frame.bytes()).ok()?;
        let inside = self.tunnel_of(&outer)?.inside(frame.bytes(), &outer)?;
        let Transport::Tcp(tcp) = &inside.parsed.transport else { return None };
        Some(Candidate::new(&inside.parsed, tcp, frame))
    }
}
