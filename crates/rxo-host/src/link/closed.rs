//! Answers UDP datagrams: this host has no UDP, so every port is closed.
//!
//! The module is separate from the other messages because the answer quotes the packet. Without an answer, a
//! client would wait for a timeout: an application that tries QUIC first would fall back to TCP only slowly.

use std::net::IpAddr;

use rxo_frame::Instant;
use rxo_wire::{IpVersion, Parsed};

use super::receive::HOP_LIMIT;
use super::{FrameOutcome, Link};

impl Link {
    /// Answers a UDP datagram for this host with "port unreachable" (RFC 1122, section 4.1.3.1; RFC 4443,
    /// section 3.1). Datagrams that must not be answered, such as those to groups or from invalid sources (RFC
    /// 1122, section 3.2.2), have already been refused by the gate.
    pub(super) fn refuse_datagram(
        &mut self,
        ip: &Parsed,
        bytes: &[u8],
        now: Instant,
    ) -> Option<FrameOutcome> {
        let from = self.sender_mac(bytes)?;
        let quoted = bytes.get(ip.at.network as usize..ip.at.end as usize)?;
        let ([kind, code], most) = match ip.ip.version {
            IpVersion::V4 => (UNREACHABLE_V4, MOST_V4),
            IpVersion::V6 => (UNREACHABLE_V6, MOST_V6),
        };
        if !self.may_refuse.take(now) {
            self.counters.held_back += 1;
            return Some(FrameOutcome::Nothing);
        }
        let quoted = &quoted[..quoted.len().min(most)];
        let message = [&[kind, code, 0, 0, 0, 0, 0, 0], quoted].concat();
        let envelope = self.envelope(from, HOP_LIMIT, 0);
        let (to, ours): (IpAddr, IpAddr) = (ip.key.source(), ip.key.destination());
        self.push(envelope.icmp(ours, to, &message));
        self.counters.closed_ports += 1;
        Some(FrameOutcome::Nothing)
    }
}

/// ICMP type and code of "port unreachable".
const UNREACHABLE_V4: [u8; 2] = [3, 3];
/// ICMPv6 type and code of "port unreachable".
const UNREACHABLE_V6: [u8; 2] = [1, 4];
/// Maximum number of bytes that the answer quotes with IPv4: the answer has at most 576 bytes (RFC 1812,
/// section 4.3.2.3).
const MOST_V4: usize = 576 - 20 - 8;
/// Maximum number of bytes that the answer quotes with IPv6: the answer has at most 1,280 bytes (RFC 4443,
/// section 2.4 (c)).
const MOST_V6: usize = 1_280 - 40 - 8;
