//! The *Rules* tier: the full parse, `candidate`, `verdict`.
//!
//! Receives every frame that the faster tiers do not process. This tier could process all frames: the faster
//! tiers reach the same decisions as this tier.

use rxo_frame::{Frame, FrameBuffer};
use rxo_wire::{Malformed, Parsed, Transport, Unparsed, tcp, udp};

use super::Engine;
use super::apply::Taken;
use super::cursor::{Cursor, flow_key};
use crate::acks::{ack_candidate, is_pure};
use crate::datagrams::datagram;
use crate::held::Segment;
use crate::single::Starts;
use crate::{BypassReason, Candidate, Kind, candidate};

impl<B: FrameBuffer> Engine<B> {
    /// Decides on a frame by all rules and applies the verdict.
    #[inline]
    pub(super) fn take_by_rules(&mut self, at: Cursor<'_, B>) -> Taken {
        let frame = at.held(at.slot());
        let parsed = match self.config.read(frame.bytes()) {
            Ok(parsed) => parsed,
            Err(unparsed) => {
                self.bypass_unparsed(frame, at.slot(), unparsed);
                return Taken::Left;
            }
        };
        if let Some(tunnel) = self.tunnel_of(&parsed) {
            return self.take_tunnelled(at, &parsed, tunnel);
        }
        match self.judge(frame, &parsed) {
            Ok(candidate) => Taken::of(self.join(at, (&parsed, &candidate))),
            Err(reason) => {
                self.bypass(frame, at.slot(), &parsed, reason);
                Taken::Left
            }
        }
    }

    /// Applies the static rules to a frame. Its checksum is verified last, because that requires reading the
    /// payload.
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
        let field = if candidate.is_datagram { udp::CHECKSUM_AT } else { tcp::CHECKSUM_AT };
        if frame.checksum.is_elsewhere(candidate.at.transport as usize, field as u16) {
            return Err(BypassReason::ChecksumElsewhere);
        }
        match self.is_intact(frame, parsed) {
            true => Ok(candidate),
            false if candidate.is_datagram => Err(BypassReason::BadUdpChecksum),
            false => Err(BypassReason::BadTcpChecksum),
        }
    }

    /// Decides on a candidate by the state of its flow, and applies the verdict. Returns the index at which the
    /// candidate is held; `None` if it was delivered or is a pure ACK.
    fn join(
        &mut self,
        at: Cursor<'_, B>,
        (parsed, candidate): (&Parsed, &Candidate<'_>),
    ) -> Option<u16> {
        let frame = at.held(at.slot());
        let key = flow_key(parsed.key, frame);
        let hash = self.hasher.hash(&key);
        let segment = Segment::of(candidate, (key, hash), frame, at.slot());
        let kind = segment.kind();
        let found = self.find_alike(&key, hash, kind);
        let last = found.and_then(|flow| self.last_of(at, flow));
        if kind == Kind::Datagrams {
            return self.apply_datagram((candidate, segment), found, last.as_ref());
        }
        let flow = self.judge_and_apply((candidate, segment), found, last.as_ref())?;
        (kind == Kind::Data).then_some(flow)
    }

    /// Parses the last segment that `flow` holds again; `None` if it cannot be parsed. Only unusual frames
    /// need this.
    fn last_of<'a>(&self, at: Cursor<'a, B>, flow: u16) -> Option<Candidate<'a>> {
        let frame = at.held(self.store.held[usize::from(flow)].chain.tail);
        let parsed = self.config.read(frame.bytes()).ok()?;
        match &parsed.transport {
            Transport::Tcp(tcp) => Some(Candidate::new(&parsed, tcp, frame)),
            Transport::Udp(_) => Some(Candidate::datagram(parsed.ip, parsed.at, frame)),
            Transport::Fragment | Transport::Other(_) => None,
        }
    }

    fn bypass_unparsed(&mut self, frame: &Frame<B>, slot: u32, unparsed: Unparsed) {
        if let Some(addresses) = unparsed.addresses {
            self.flush_hosts(&flow_key(addresses, frame), slot);
        }
        let reason = match unparsed.why {
            Malformed::NotIp => BypassReason::NotIp,
            Malformed::Truncated => BypassReason::Truncated,
            Malformed::Version | Malformed::Length => BypassReason::Malformed,
        };
        self.deliver_untouched(slot, Starts::UNKNOWN, reason);
    }
}
