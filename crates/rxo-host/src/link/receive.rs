//! Receives a frame: passes it through the gate, then handles it by its kind.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{Icmpv4Slice, Icmpv4Type, Icmpv6Slice, Icmpv6Type};
use rxo_frame::{Frame, Instant, LinkKind};
use rxo_wire::{FlowKey, Offsets, Parsed};

use super::arp::Arp;
use super::discovery::{self, Discovery};
use super::gate::{Ours, Receivers, may_arrive};
use super::groups::{Query, igmp, mld};
use super::neighbours::{self, Mac};
use super::packet::{self, Packet};
use super::path::{self, PathError};
use super::{FrameOutcome, Link};

impl Link {
    /// Receives a frame of an unknown flow: parses its headers and verifies its checksums. Answers are queued for
    /// [`Link::poll_transmit`]. A TCP segment is returned as [`FrameOutcome::Segment`]. A frame that the gate refuses
    /// is counted and ignored.
    pub fn on_frame<B: AsRef<[u8]>>(&mut self, frame: &Frame<B>, now: Instant) -> FrameOutcome {
        let packet = Packet::read(self.kind, frame.bytes());
        let is_right = || packet.is_right(frame, self.summer);
        let ours = Ours { routes: &self.routes, groups: &self.groups };
        if !self.gate.admits(ours, frame, packet.addressed(), is_right) {
            return FrameOutcome::Nothing;
        }
        let outcome = match packet {
            Packet::Segment(parsed) => Some(FrameOutcome::Segment(parsed)),
            Packet::Arp(arp) => Some(self.receive_arp(&arp, now)),
            Packet::Icmp(ip, _) => self.receive_icmp(&ip, frame.bytes(), now),
            Packet::Igmp(ip) => {
                let query = igmp::query(packet::message(&ip, frame.bytes()));
                query.map(|query| self.receive_query(&query, true, now))
            }
            Packet::Datagram(ip) if ip.key.destination().is_multicast() => {
                Some(FrameOutcome::ToGroup(ip))
            }
            Packet::Datagram(ip) => self.refuse_datagram(&ip, frame.bytes(), now),
            Packet::Other => None,
        };
        outcome.unwrap_or_else(|| {
            self.counters.ignored += 1;
            FrameOutcome::Nothing
        })
    }

    /// Returns `true` if all shards of this host need `frame`, because it is about neighbours or paths.
    pub(crate) fn is_for_all_shards<B: AsRef<[u8]>>(&self, frame: &Frame<B>) -> bool {
        match Packet::read(self.kind, frame.bytes()) {
            Packet::Arp(_) => true,
            Packet::Icmp(ip, _) => !matches!(
                packet::message(&ip, frame.bytes()),
                [ECHO_REQUEST_V4 | ECHO_REQUEST_V6, ..]
            ),
            Packet::Segment(_) | Packet::Igmp(_) | Packet::Datagram(_) | Packet::Other => false,
        }
    }

    /// Receives a copy of a frame that another shard has received. The other shard answers and counts the
    /// frame; this shard only updates its tables.
    pub(crate) fn receive_copy<B: AsRef<[u8]>>(
        &mut self,
        frame: &Frame<B>,
        now: Instant,
    ) -> FrameOutcome {
        let (answers, counters) = (self.frames.len(), self.counters);
        let outcome = self.on_frame(frame, now);
        self.frames.truncate(answers);
        self.counters = counters;
        outcome
    }

    /// Returns `true` if the segments of a delivery pass the gate. All of them have the link header of
    /// `frame` and the flow `key`. If `is_intact`, their checksums are known to be right; otherwise `frame`
    /// is the only packet, its headers are at the offsets `at`, and its checksums are verified.
    #[inline]
    pub(crate) fn admits<B: AsRef<[u8]>>(
        &mut self,
        frame: &Frame<B>,
        key: &FlowKey,
        at: Offsets,
        is_intact: bool,
    ) -> bool {
        let summer = self.summer;
        let is_right = || is_intact || packet::is_segment_right(frame, key, at, summer);
        let ours = Ours { routes: &self.routes, groups: &self.groups };
        self.gate.admits(ours, frame, Some((key, Receivers::Connection)), is_right)
    }

    /// Returns `true` if the gate would admit packets with the addresses of the flow `key`. Can be called
    /// before any packet arrives. Does not change counters.
    pub(crate) fn may_arrive(&self, key: &FlowKey) -> bool {
        may_arrive(Ours { routes: &self.routes, groups: &self.groups }, key)
    }

    /// Handles an ARP packet (RFC 826, "Packet Reception").
    fn receive_arp(&mut self, arp: &Arp, now: Instant) -> FrameOutcome {
        self.counters.neighbour_messages += 1;
        if self.is_ours(arp.sender.into()) {
            self.defend(arp, now);
            return FrameOutcome::Nothing;
        }
        if self.is_probing() && self.is_ours(arp.target.into()) {
            self.receive_while_probing(arp);
            return FrameOutcome::Nothing;
        }
        let is_for_us = self.is_ours(arp.target.into());
        let is_updated = self.update_neighbour(
            &neighbours::NeighbourMessage {
                ip: arp.sender.into(),
                mac: Some(arp.sender_mac),
                is_answer: is_for_us && !arp.is_request,
                overrides: true,
                is_for_us,
            },
            now,
        );
        // A probe, which asks whether an address is free, is answered as well (RFC 5227, section 2.1.1).
        let may_ask = arp.sender.is_unspecified() || self.routes.may_be_another(arp.sender.into());
        if is_for_us && arp.is_request && may_ask {
            self.answer(now, arp.reply(self.mac));
        }
        if is_updated { FrameOutcome::Neighbour(arp.sender.into()) } else { FrameOutcome::Nothing }
    }

    /// Defends an address of this host that another station claims (RFC 5227, section 2.4, rule b).
    fn defend(&mut self, arp: &Arp, now: Instant) {
        let is_another = self.note_claim(arp.sender.into(), arp.sender_mac);
        if is_another && !self.is_probing() && self.may_defend.take(now) {
            self.push(super::arp::request(self.mac, arp.sender, arp.sender, None));
        }
    }

    /// Handles an ARP packet about an address that is still being probed. A probe of another station for the
    /// same address is a conflict (RFC 5227, section 2.1.1). Other requests are not answered, because this host
    /// does not use the address yet.
    fn receive_while_probing(&mut self, arp: &Arp) {
        if arp.is_request && arp.sender.is_unspecified() {
            self.note_claim(arp.target.into(), arp.sender_mac);
        }
    }

    fn update_neighbour(&mut self, message: &neighbours::NeighbourMessage, now: Instant) -> bool {
        self.routes.may_be_neighbour(message.ip) && self.neighbours.update(message, now)
    }

    fn receive_icmp(&mut self, ip: &Parsed, bytes: &[u8], now: Instant) -> Option<FrameOutcome> {
        let (message, from) = (packet::message(ip, bytes), self.sender_mac(bytes)?);
        if message.first() == Some(&mld::QUERY) {
            return self.receive_mld(ip, bytes, now);
        }
        match (ip.key.source(), ip.key.destination()) {
            (IpAddr::V4(source), IpAddr::V4(to)) => {
                self.receive_icmpv4(&Letter { ip, message, from, source, to }, now)
            }
            (IpAddr::V6(source), IpAddr::V6(to)) => {
                self.receive_icmpv6(&Letter { ip, message, from, source, to }, now)
            }
            _ => None,
        }
    }

    fn receive_mld(&mut self, ip: &Parsed, bytes: &[u8], now: Instant) -> Option<FrameOutcome> {
        let IpAddr::V6(source) = ip.key.source() else { return None };
        let packet = bytes.get(ip.at.network as usize..)?;
        let is_valid = mld::is_valid(ip.ip.hop_limit, source, packet);
        let query = mld::query(packet::message(ip, bytes)).filter(|_| is_valid)?;
        Some(self.receive_query(&query, false, now))
    }

    fn receive_query(&mut self, query: &Query, is_v4: bool, now: Instant) -> FrameOutcome {
        self.counters.group_queries += 1;
        self.counters.older_queriers += u64::from(!query.knows_sources);
        self.groups.ask(query, is_v4, now);
        FrameOutcome::Nothing
    }

    /// Returns the Ethernet address of the sender; zeros on links without Ethernet, `None` if the frame is
    /// too short.
    pub(super) fn sender_mac(&self, bytes: &[u8]) -> Option<Mac> {
        match self.kind {
            LinkKind::RawIp => Some([0; 6]),
            LinkKind::Ethernet => bytes.get(6..)?.first_chunk().copied(),
        }
    }

    fn receive_icmpv4(
        &mut self,
        letter: &Letter<'_, Ipv4Addr>,
        now: Instant,
    ) -> Option<FrameOutcome> {
        let icmp = Icmpv4Slice::from_slice(letter.message).ok()?;
        if let Icmpv4Type::EchoRequest(_) = icmp.icmp_type() {
            return self.echo(letter, ECHO_REPLY_V4, now);
        }
        let error = path::read_v4(&icmp)?;
        self.path_error(error)
    }

    fn receive_icmpv6(
        &mut self,
        letter: &Letter<'_, Ipv6Addr>,
        now: Instant,
    ) -> Option<FrameOutcome> {
        let icmp = Icmpv6Slice::from_slice(letter.message).ok()?;
        let hop_limit = letter.ip.ip.hop_limit;
        if let Some(discovery) = Discovery::read(&icmp, hop_limit, letter.to) {
            return self.receive_discovery(&discovery, letter, now);
        }
        if let Icmpv6Type::EchoRequest(_) = icmp.icmp_type() {
            return self.echo(letter, ECHO_REPLY_V6, now);
        }
        let error = path::read_v6(&icmp)?;
        self.path_error(error)
    }

    /// Handles a neighbour discovery message (RFC 4861, sections 7.2.3 and 7.2.5).
    fn receive_discovery(
        &mut self,
        discovery: &Discovery,
        letter: &Letter<'_, Ipv6Addr>,
        now: Instant,
    ) -> Option<FrameOutcome> {
        if self.kind == LinkKind::RawIp {
            return None;
        }
        self.counters.neighbour_messages += 1;
        match *discovery {
            Discovery::Solicitation { target, source_mac } if self.is_ours(target.into()) => {
                self.receive_solicitation(target, source_mac, letter, now);
                Some(FrameOutcome::Nothing)
            }
            Discovery::Solicitation { .. } => Some(FrameOutcome::Nothing),
            Discovery::Advertisement { target, target_mac, .. } if self.is_ours(target.into()) => {
                self.note_claim(target.into(), target_mac.unwrap_or(letter.from));
                Some(FrameOutcome::Nothing)
            }
            Discovery::Advertisement { target, target_mac, is_answer, overrides } => {
                let (ip, mac) = (target.into(), target_mac);
                let message = neighbours::NeighbourMessage {
                    ip,
                    mac,
                    is_answer,
                    overrides,
                    is_for_us: is_answer,
                };
                let is_updated = self.update_neighbour(&message, now);
                Some(if is_updated { FrameOutcome::Neighbour(ip) } else { FrameOutcome::Nothing })
            }
        }
    }

    fn receive_solicitation(
        &mut self,
        target: Ipv6Addr,
        source_mac: Option<Mac>,
        letter: &Letter<'_, Ipv6Addr>,
        now: Instant,
    ) {
        if self.is_probing() {
            // A probe of another host is a claim (RFC 4862, section 5.4.3); a probe of this host may come
            // back.
            if letter.source.is_unspecified() {
                self.note_claim(target.into(), letter.from);
            }
            return;
        }
        if letter.source.is_unspecified() {
            // The probe of a host that checks if the address is free (RFC 4862, section 5.4.3) is answered to
            // all nodes.
            self.answer(now, discovery::advertise(self.mac, target, None));
            return;
        }
        let message = neighbours::NeighbourMessage {
            ip: letter.source.into(),
            mac: source_mac,
            is_answer: false,
            overrides: true,
            is_for_us: true,
        };
        self.update_neighbour(&message, now);
        let to = (letter.source, source_mac.unwrap_or(letter.from));
        self.answer(now, discovery::advertise(self.mac, target, Some(to)));
    }

    /// Answers an echo request (RFC 792; RFC 4443, section 4.2). The answer is sent to the Ethernet address
    /// from which the request came.
    fn echo<A: Into<IpAddr> + Copy>(
        &mut self,
        letter: &Letter<'_, A>,
        kind: u8,
        now: Instant,
    ) -> Option<FrameOutcome> {
        if !self.may_echo.take(now) {
            self.counters.held_back += 1;
            return Some(FrameOutcome::Nothing);
        }
        let mut message = letter.message.to_vec();
        *message.first_mut()? = kind;
        let envelope = self.envelope(letter.from, HOP_LIMIT, letter.ip.ip.traffic_class);
        self.push(envelope.icmp(letter.to.into(), letter.source.into(), &message));
        self.counters.echoes += 1;
        Some(FrameOutcome::Nothing)
    }

    /// Handles an ICMP error about a packet that this host has sent; ignores errors about other packets.
    fn path_error(&mut self, error: PathError) -> Option<FrameOutcome> {
        let (PathError::TooBig(super::PacketTooBig { pair, .. })
        | PathError::Unreachable(super::Unreachable { pair, .. })) = error;
        if !self.is_ours(pair.source()) {
            return None;
        }
        self.counters.path_errors += 1;
        Some(match error {
            PathError::TooBig(too_big) => FrameOutcome::TooBig(too_big),
            PathError::Unreachable(unreachable) => FrameOutcome::Unreachable(unreachable),
        })
    }
}

/// An ICMP message with its IP and Ethernet addresses.
struct Letter<'a, A> {
    ip: &'a Parsed,
    message: &'a [u8],
    from: Mac,
    source: A,
    to: A,
}

const ECHO_REQUEST_V4: u8 = 8;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V4: u8 = 0;
const ECHO_REPLY_V6: u8 = 129;
pub(super) const HOP_LIMIT: u8 = 64;
