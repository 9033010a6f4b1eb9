//! A frame that is not TCP's, sorted by what it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{Icmpv4Slice, Icmpv4Type, Icmpv6Slice, Icmpv6Type};
use rxo_frame::{Frame, Instant, LinkKind};
use rxo_wire::checksum::{Summer, pseudo_header};
use rxo_wire::{ETHERNET_HEADER_BYTES, Parsed, Transport, ethertype, parse, parse_ip};

use super::arp::Arp;
use super::discovery::{self, Discovery};
use super::frames::{BROADCAST, ETHERTYPE_ARP, Envelope, PROTOCOL_ICMP, PROTOCOL_ICMPV6};
use super::neighbours::{self, Mac};
use super::path::{self, PathError};
use super::{Heard, Link};

impl Link {
    /// Takes a frame that is not TCP's (of one that is it takes nothing). What it answers stands in
    /// the queue of [`Link::poll_transmit`]. A frame for another station, or on a VLAN, is none of
    /// this link's.
    pub fn on_frame<B: AsRef<[u8]>>(&mut self, frame: &Frame<B>, now: Instant) -> Heard {
        let bytes = frame.bytes();
        if frame.vlan.is_some() || !self.is_for_us(bytes) {
            self.counters.not_for_us += 1;
            return Heard::Nothing;
        }
        let heard = match self.kind {
            LinkKind::Ethernet if ethertype(bytes) == Some(ETHERTYPE_ARP) => {
                Arp::read(bytes.get(ETHERNET_HEADER_BYTES..).unwrap_or_default())
                    .map(|arp| self.hear_arp(&arp, now))
            }
            LinkKind::Ethernet => parse(bytes).ok().and_then(|ip| self.hear_ip(&ip, bytes, now)),
            LinkKind::RawIp => parse_ip(bytes).ok().and_then(|ip| self.hear_ip(&ip, bytes, now)),
        };
        if heard.is_none() {
            self.counters.ignored += 1;
        }
        heard.unwrap_or(Heard::Nothing)
    }

    /// A promiscuous device also shows what is for others.
    fn is_for_us(&self, bytes: &[u8]) -> bool {
        let is_group = |mac: Mac| mac == BROADCAST || mac[..2] == [0x33, 0x33];
        let to = bytes.first_chunk::<6>();
        self.kind == LinkKind::RawIp || to.is_some_and(|mac| *mac == self.mac || is_group(*mac))
    }

    /// RFC 826, "Packet Reception".
    fn hear_arp(&mut self, arp: &Arp, now: Instant) -> Heard {
        self.counters.neighbour_messages += 1;
        if self.is_ours(arp.sender.into()) {
            self.defend(arp, now);
            return Heard::Nothing;
        }
        let is_for_us = self.is_ours(arp.target.into());
        let is_news = self.hear_neighbour(
            &neighbours::Heard {
                ip: arp.sender.into(),
                mac: Some(arp.sender_mac),
                is_answer: is_for_us && !arp.is_request,
                overrides: true,
                is_for_us,
            },
            now,
        );
        // Also to one who only asks whether it is free (RFC 5227, section 2.1.1).
        if is_for_us && arp.is_request {
            self.answer(now, arp.reply(self.mac));
        }
        if is_news { Heard::Neighbour(arp.sender.into()) } else { Heard::Nothing }
    }

    /// Somebody else claims an address of ours (RFC 5227, section 2.4, rule b).
    fn defend(&mut self, arp: &Arp, now: Instant) {
        if arp.sender_mac == self.mac {
            return;
        }
        self.counters.conflicts += 1;
        if self.may_defend.take(now) {
            self.push(super::arp::request(self.mac, arp.sender, arp.sender, None));
        }
    }

    fn hear_neighbour(&mut self, heard: &neighbours::Heard, now: Instant) -> bool {
        self.routes.may_be_neighbour(heard.ip) && self.neighbours.hear(heard, now)
    }

    fn hear_ip(&mut self, ip: &Parsed, bytes: &[u8], now: Instant) -> Option<Heard> {
        let message = bytes.get(ip.transport_at as usize..ip.end as usize)?;
        let is_whole = ip.ip.checksum_ok && ip.vlans.depth() == 0;
        let from = self.sender_mac(bytes)?;
        let source = ip.key.source();
        match (ip.transport, ip.key.destination()) {
            (Transport::Other(PROTOCOL_ICMP), IpAddr::V4(to)) if is_whole => {
                let IpAddr::V4(source) = source else { return None };
                self.hear_icmpv4(&Letter { ip, message, from, source, to }, now)
            }
            (Transport::Other(PROTOCOL_ICMPV6), IpAddr::V6(to)) if is_whole => {
                let IpAddr::V6(source) = source else { return None };
                self.hear_icmpv6(&Letter { ip, message, from, source, to }, now)
            }
            _ => None,
        }
    }

    /// Who sent the frame; zeros without Ethernet.
    fn sender_mac(&self, bytes: &[u8]) -> Option<Mac> {
        match self.kind {
            LinkKind::RawIp => Some([0; 6]),
            LinkKind::Ethernet => bytes.get(6..)?.first_chunk().copied(),
        }
    }

    fn hear_icmpv4(&mut self, letter: &Letter<'_, Ipv4Addr>, now: Instant) -> Option<Heard> {
        let icmp = Icmpv4Slice::from_slice(letter.message).ok()?;
        let is_right = Summer::portable().sum(letter.message).is_valid();
        if !is_right || !self.is_ours(letter.to.into()) {
            return None;
        }
        if let Icmpv4Type::EchoRequest(_) = icmp.icmp_type() {
            return self.echo(letter, ECHO_REPLY_V4, now);
        }
        let error = path::read_v4(&icmp)?;
        self.path_error(error)
    }

    fn hear_icmpv6(&mut self, letter: &Letter<'_, Ipv6Addr>, now: Instant) -> Option<Heard> {
        let icmp = Icmpv6Slice::from_slice(letter.message).ok()?;
        let bytes = u32::try_from(letter.message.len()).ok()?;
        let pseudo = pseudo_header(&letter.ip.key, PROTOCOL_ICMPV6, bytes);
        let is_right = (pseudo + Summer::portable().sum(letter.message)).is_valid();
        let is_ours = self.is_ours(letter.to.into());
        if !is_right || !(is_ours || self.hears_group(letter.to)) {
            return None;
        }
        let hop_limit = letter.ip.ip.hop_limit;
        if let Some(discovery) = Discovery::read(&icmp, hop_limit, letter.to) {
            return self.hear_discovery(&discovery, letter, now);
        }
        match icmp.icmp_type() {
            Icmpv6Type::EchoRequest(_) if is_ours => self.echo(letter, ECHO_REPLY_V6, now),
            _ if is_ours => {
                let error = path::read_v6(&icmp)?;
                self.path_error(error)
            }
            _ => None,
        }
    }

    /// RFC 4861, sections 7.2.3 and 7.2.5.
    fn hear_discovery(
        &mut self,
        discovery: &Discovery,
        letter: &Letter<'_, Ipv6Addr>,
        now: Instant,
    ) -> Option<Heard> {
        if self.kind == LinkKind::RawIp {
            return None;
        }
        self.counters.neighbour_messages += 1;
        match *discovery {
            Discovery::Solicitation { target, source_mac } if self.is_ours(target.into()) => {
                self.hear_question(target, source_mac, letter, now);
                Some(Heard::Nothing)
            }
            Discovery::Solicitation { .. } => Some(Heard::Nothing),
            Discovery::Advertisement { target, .. } if self.is_ours(target.into()) => {
                self.counters.conflicts += 1;
                Some(Heard::Nothing)
            }
            Discovery::Advertisement { target, target_mac, is_answer, overrides } => {
                let (ip, mac) = (target.into(), target_mac);
                let heard =
                    neighbours::Heard { ip, mac, is_answer, overrides, is_for_us: is_answer };
                let is_news = self.hear_neighbour(&heard, now);
                Some(if is_news { Heard::Neighbour(ip) } else { Heard::Nothing })
            }
        }
    }

    fn hear_question(
        &mut self,
        target: Ipv6Addr,
        source_mac: Option<Mac>,
        letter: &Letter<'_, Ipv6Addr>,
        now: Instant,
    ) {
        if letter.source.is_unspecified() {
            // Somebody asks whether the address is free (RFC 4862, section 5.4.3): all are told.
            self.answer(now, discovery::advertise(self.mac, target, None));
            return;
        }
        let heard = neighbours::Heard {
            ip: letter.source.into(),
            mac: source_mac,
            is_answer: false,
            overrides: true,
            is_for_us: true,
        };
        self.hear_neighbour(&heard, now);
        let to = (letter.source, source_mac.unwrap_or(letter.from));
        self.answer(now, discovery::advertise(self.mac, target, Some(to)));
    }

    /// RFC 792; RFC 4443, section 4.2. The answer goes back the way the question came.
    fn echo<A: Into<IpAddr> + Copy>(
        &mut self,
        letter: &Letter<'_, A>,
        kind: u8,
        now: Instant,
    ) -> Option<Heard> {
        let source = letter.source.into();
        let is_somebody = !source.is_unspecified() && !source.is_multicast();
        if !is_somebody || self.is_ours(source) {
            return None;
        }
        if !self.may_echo.take(now) {
            self.counters.held_back += 1;
            return Some(Heard::Nothing);
        }
        let mut message = letter.message.to_vec();
        *message.first_mut()? = kind;
        let macs = (self.kind == LinkKind::Ethernet).then_some((self.mac, letter.from));
        let traffic_class = letter.ip.ip.traffic_class;
        let envelope = Envelope { macs, hop_limit: HOP_LIMIT, traffic_class };
        self.push(envelope.icmp(letter.to.into(), source, &message));
        self.counters.echoes += 1;
        Some(Heard::Nothing)
    }

    /// Of an error only what this host has sent itself is believed to be about it.
    fn path_error(&mut self, error: PathError) -> Option<Heard> {
        let (PathError::TooBig(super::PacketTooBig { pair, .. })
        | PathError::Unreachable(super::Unreachable { pair, .. })) = error;
        if !self.is_ours(pair.source()) {
            return None;
        }
        self.counters.path_errors += 1;
        Some(match error {
            PathError::TooBig(too_big) => Heard::TooBig(too_big),
            PathError::Unreachable(unreachable) => Heard::Unreachable(unreachable),
        })
    }
}

/// An ICMP message and who wrote to whom.
struct Letter<'a, A> {
    ip: &'a Parsed,
    message: &'a [u8],
    from: Mac,
    source: A,
    to: A,
}

const ECHO_REPLY_V4: u8 = 0;
const ECHO_REPLY_V6: u8 = 129;
const HOP_LIMIT: u8 = 64;
