//! The *Rules* tier: the full parse, `candidate`, `verdict`.
//!
//! It takes every frame that the tiers before it leave, and alone could take all: what those decide, it
//! would decide alike.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::{IpVersion, Malformed, Parsed, Transport, Unparsed, checksum, tcp};

use super::Engine;
use super::apply::flow_key;
use super::batch::Batch;
use crate::acks::{ack_candidate, ack_verdict, is_pure};
use crate::datagrams::{self, datagram};
use crate::expected::{V4, V6};
use crate::held::Segment;
use crate::single::Starts;
use crate::{BypassReason, Candidate, FlushReason, Kind, Verdict, candidate, verdict};

impl<B: FrameBuffer> Engine<B> {
    /// Judges the frame in `slot` by all rules and acts, then goes on with those after it that
    /// continue it. Returns the slot after the last.
    #[inline(never)]
    pub(super) fn take_by_rules(&mut self, batch: Batch<'_, B>, slot: u32) -> u32 {
        let frame = batch.frame(slot);
        let place = match self.read(frame.bytes()) {
            Ok(parsed) => {
                if let Some(tunnel) = self.tunnel_of(&parsed) {
                    return self.take_tunnelled(batch, slot, &parsed, tunnel);
                }
                match self.judge(frame, &parsed) {
                    Ok(candidate) => self.join(batch, slot, (&parsed, &candidate)),
                    Err(reason) => {
                        self.bypass(frame, slot, &parsed, reason);
                        None
                    }
                }
            }
            Err(unparsed) => {
                self.bypass_unparsed(frame, slot, unparsed);
                None
            }
        };
        let Some(place) = place else { return slot + 1 };
        let held = &self.store.held[usize::from(place)];
        let (version, network) = (held.version, usize::from(held.at.network()));
        match (version, held.kind()) {
            (IpVersion::V4, Kind::Datagrams) => {
                self.run_of_datagrams::<V4>(batch, place, slot + 1, network)
            }
            (IpVersion::V6, Kind::Datagrams) => {
                self.run_of_datagrams::<V6>(batch, place, slot + 1, network)
            }
            (IpVersion::V4, _) => self.run::<V4>(batch, place, slot),
            (IpVersion::V6, _) => self.run::<V6>(batch, place, slot),
        }
    }

    /// Judges a frame by itself, its checksum last: that reads the payload.
    fn judge<'a>(
        &self,
        frame: &'a Frame<B>,
        parsed: &Parsed,
    ) -> Result<Candidate<'a>, BypassReason> {
        let policy = &self.config.policy;
        let candidate = match &parsed.transport {
            Transport::Udp(udp) if policy.takes_datagrams() => {
                datagram(parsed, udp, policy)?;
                Candidate::datagram(parsed.ip, parsed.at, frame)
            }
            _ if self.ack_limit >= 2 && is_pure(parsed) => {
                Candidate::new(parsed, ack_candidate(parsed, frame.bytes(), policy)?, frame)
            }
            _ => Candidate::new(parsed, candidate(parsed, policy)?, frame),
        };
        if frame.gso.is_some() {
            return Err(BypassReason::AlreadyAggregated);
        }
        let field = if candidate.is_datagram { datagrams::CHECKSUM_AT } else { tcp::CHECKSUM_AT };
        if frame.checksum.is_elsewhere(candidate.at.transport as usize, field as u16) {
            return Err(BypassReason::ChecksumElsewhere);
        }
        match self.is_intact(frame, parsed) {
            true => Ok(candidate),
            false if candidate.is_datagram => Err(BypassReason::BadUdpChecksum),
            false => Err(BypassReason::BadTcpChecksum),
        }
    }

    /// Whether the checksum of a segment or datagram is right, or trusted. Reads the payload if it is not trusted.
    pub(super) fn is_intact(&self, frame: &Frame<B>, parsed: &Parsed) -> bool {
        self.is_trusted(frame)
            || checksum::verify_transport(parsed, frame.bytes(), self.config.summer)
    }

    /// Whether the checksum needs no look. One that is partial must be the packet's own: a tier that does not compare
    /// frames with those held asks [`is_described_oddly`] first.
    #[inline]
    pub(super) fn is_trusted(&self, frame: &Frame<B>) -> bool {
        self.config.trust_checksums || frame.checksum.is_trusted()
    }

    /// Judges a candidate against what its flow holds, and acts. Returns where it is held, unless it is a pure ACK.
    fn join(
        &mut self,
        batch: Batch<'_, B>,
        slot: u32,
        (parsed, candidate): (&Parsed, &Candidate<'_>),
    ) -> Option<u16> {
        let frame = batch.frame(slot);
        let key = flow_key(parsed.key, frame);
        let flow = self.hasher.hash(&key);
        let segment = Segment::of(candidate, (key, flow), frame, slot);
        let kind = segment.kind();
        let found = self.find_alike(&key, flow, kind);
        let last = found.and_then(|place| self.last_of(batch, place));
        if kind == Kind::Datagrams {
            return self.apply_datagram((candidate, segment), found, last.as_ref());
        }
        let place = self.judge_and_apply((candidate, segment), found, last.as_ref())?;
        (kind == Kind::Data).then_some(place)
    }

    /// Judges a candidate whose flow holds segments of its kind at `found`, `last` being the last of them,
    /// and acts. Returns where it is held, if it is.
    #[inline(always)]
    pub(super) fn judge_and_apply(
        &mut self,
        (candidate, mut segment): (&Candidate<'_>, Segment),
        found: Option<u16>,
        last: Option<&Candidate<'_>>,
    ) -> Option<u16> {
        segment.id_step = last.map_or(0, |last| candidate.ip.id.wrapping_sub(last.ip.id));
        let verdict = self.verdict(found.zip(last), candidate, &segment);
        self.apply(verdict, found, &segment)
    }

    /// The last segment that is held at `place`, read again: only what is unusual needs it.
    fn last_of<'a>(&self, batch: Batch<'a, B>, place: u16) -> Option<Candidate<'a>> {
        let frame = batch.frame(self.store.held[usize::from(place)].chain.tail);
        let parsed = self.read(frame.bytes()).ok()?;
        match &parsed.transport {
            Transport::Tcp(tcp) => Some(Candidate::new(&parsed, tcp, frame)),
            Transport::Udp(_) => Some(Candidate::datagram(parsed.ip, parsed.at, frame)),
            Transport::Fragment | Transport::Other(_) => None,
        }
    }

    /// The verdict on a candidate whose flow holds segments of its kind, given where and the last of them.
    fn verdict(
        &self,
        last: Option<(u16, &Candidate<'_>)>,
        candidate: &Candidate<'_>,
        segment: &Segment,
    ) -> Verdict {
        let policy = &self.config.policy;
        let of = |place| &self.store.held[usize::from(place)];
        match (segment.kind(), last) {
            (Kind::PureAck, None) => self.ack_alone(segment),
            (Kind::PureAck, Some((place, last))) => {
                match ack_verdict((of(place), last), candidate, policy) {
                    Verdict::Append(_) if !self.says_on(place, segment) => {
                        Verdict::FlushThenStart(FlushReason::Window, None)
                    }
                    verdict => verdict,
                }
            }
            (_, last) => verdict(last.map(|(place, last)| (of(place), last)), candidate, policy),
        }
    }

    /// Delivers a frame untouched, after whatever of its flow is held.
    pub(super) fn bypass(
        &mut self,
        frame: &Frame<B>,
        slot: u32,
        parsed: &Parsed,
        reason: BypassReason,
    ) {
        if !self.is_idle() || !self.memory.is_off() {
            let key = flow_key(parsed.key, frame);
            self.make_way(reason, &key, slot);
            self.note_bypassed(frame, parsed, &key, reason);
        }
        self.deliver_untouched(slot, Starts::of(parsed), reason);
    }

    fn bypass_unparsed(&mut self, frame: &Frame<B>, slot: u32, unparsed: Unparsed) {
        if let Some(addresses) = unparsed.addresses {
            self.flush_tunnels(slot);
            self.flush_addresses(&flow_key(addresses, frame), slot);
        }
        let reason = match unparsed.why {
            Malformed::NotIp => BypassReason::NotIp,
            Malformed::Truncated => BypassReason::Truncated,
            Malformed::Version | Malformed::Length => BypassReason::Malformed,
        };
        self.deliver_untouched(slot, Starts::UNKNOWN, reason);
    }
}

/// Whether a frame says more of itself than the fast tiers know: it is a GSO frame, or its partial checksum is not the
/// one in the `field`-th byte of the transport header at `transport`.
#[inline(always)]
pub(super) const fn is_described_oddly<B>(
    frame: &Frame<B>,
    transport: usize,
    field: usize,
) -> bool {
    frame.gso.is_some() || frame.checksum.is_elsewhere(transport, field as u16)
}
