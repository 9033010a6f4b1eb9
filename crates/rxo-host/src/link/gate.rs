//! The gate: refuses everything that is not for this host.
//!
//! Every delivery passes it before anything acts on it: lone segments, aggregates, pure ACKs, ARP, neighbour
//! discovery and other ICMP. Separate so that there is one list of reasons to refuse, checked in one order
//! and counted, which no way in can skip. A device in promiscuous mode shows frames for other hosts, and
//! answering them would be speaking in their name.

use std::net::IpAddr;

use rxo_frame::{Frame, LinkKind};
use rxo_wire::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowKey, ethertype};

use super::frames::{BROADCAST, ETHERTYPE_ARP};
use super::neighbours::Mac;
use super::routes::Routes;

/// Refused deliveries, by the first reason found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateCounters {
    /// Sent to another station's hardware address.
    pub other_station: u64,
    /// Sent to a broadcast or group address at the link, though meant for one host (RFC 1122, section 3.3.6).
    pub group_station: u64,
    /// On a VLAN; this host has none.
    pub other_vlan: u64,
    /// For an IP address that is not this host's.
    pub other_address: u64,
    /// From an address that no other host can have: a group, a broadcast, loopback, this host's own (RFC 1122,
    /// section 3.2.1.3; RFC 9293, section 3.9.2.3).
    pub no_source: u64,
    /// With a wrong IP, TCP or ICMP checksum.
    pub bad_checksum: u64,
}

impl GateCounters {
    /// The sum of all.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let Self {
            other_station,
            group_station,
            other_vlan,
            other_address,
            no_source,
            bad_checksum,
        } = *self;
        other_station + group_station + other_vlan + other_address + no_source + bad_checksum
    }
}

/// Why a delivery is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    OtherStation,
    GroupStation,
    OtherVlan,
    OtherAddress,
    NoSource,
    BadChecksum,
}

/// The intended receiver of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// One host: TCP, echo, ICMP errors.
    OneHost,
    /// Neighbours: members of a group, too, and also from hosts without an address or that claim ours.
    Neighbours,
}

/// The station that a frame was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Station {
    Us,
    Group,
}

/// The gate of one link.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    kind: LinkKind,
    mac: Mac,
    /// The last flow whose addresses were found right; they are not checked again.
    last: FlowKey,
    pub(super) counters: GateCounters,
}

impl Gate {
    pub(super) fn new(kind: LinkKind, mac: Mac) -> Self {
        // Matches no flow: a frame on a VLAN is refused before its key is compared.
        let last = FlowKey::NOBODY.on_device_vlan(0);
        Self { kind, mac, last, counters: GateCounters::default() }
    }

    /// Whether a delivery may pass. All its packets have the link header of `frame` and the addresses and
    /// receiver in `addressed`; `None` skips the check of addresses. `is_right` verifies checksums; it is called
    /// last, because it may read the whole frame. Counts a refusal.
    #[inline]
    pub(super) fn admits<B: AsRef<[u8]>>(
        &mut self,
        routes: &Routes,
        frame: &Frame<B>,
        addressed: Option<(&FlowKey, Meant)>,
        is_right: impl FnOnce() -> bool,
    ) -> bool {
        let checked = self.check_link(frame).and_then(|station| {
            if let Some((key, meant)) = addressed {
                self.check_addresses(routes, station, key, meant)?;
            }
            if is_right() { Ok(()) } else { Err(Refusal::BadChecksum) }
        });
        checked.inspect_err(|refusal| self.refuse(*refusal)).is_ok()
    }

    /// The station that `frame` was sent to. Refuses a frame with a tag or for another station.
    #[inline]
    fn check_link<B: AsRef<[u8]>>(&self, frame: &Frame<B>) -> Result<Station, Refusal> {
        let bytes = frame.bytes();
        if self.kind == LinkKind::RawIp {
            return if frame.vlan.is_some() { Err(Refusal::OtherVlan) } else { Ok(Station::Us) };
        }
        let station = match bytes.first_chunk::<6>() {
            Some(mac) if *mac == self.mac => Station::Us,
            Some(mac) if *mac == BROADCAST || mac[..2] == IPV6_GROUP => Station::Group,
            _ => return Err(Refusal::OtherStation),
        };
        if frame.vlan.is_some() || is_tagged(bytes) {
            return Err(Refusal::OtherVlan);
        }
        Ok(station)
    }

    /// Checks addresses, unless they are those of the last flow.
    #[inline]
    fn check_addresses(
        &mut self,
        routes: &Routes,
        station: Station,
        key: &FlowKey,
        meant: Meant,
    ) -> Result<(), Refusal> {
        let is_known = meant == Meant::OneHost && station == Station::Us && self.last == *key;
        if !is_known {
            check_addresses(routes, station, key, meant)?;
            if meant == Meant::OneHost {
                self.last = *key;
            }
        }
        Ok(())
    }

    #[cold]
    fn refuse(&mut self, refusal: Refusal) {
        let counters = &mut self.counters;
        *match refusal {
            Refusal::OtherStation => &mut counters.other_station,
            Refusal::GroupStation => &mut counters.group_station,
            Refusal::OtherVlan => &mut counters.other_vlan,
            Refusal::OtherAddress => &mut counters.other_address,
            Refusal::NoSource => &mut counters.no_source,
            Refusal::BadChecksum => &mut counters.bad_checksum,
        } += 1;
    }
}

/// Refuses a packet whose addresses, in `key`, or `station` are not those of a packet for this host.
fn check_addresses(
    routes: &Routes,
    station: Station,
    key: &FlowKey,
    meant: Meant,
) -> Result<(), Refusal> {
    let (source, destination) = (key.source(), key.destination());
    let is_ours = routes.is_ours(destination);
    let is_to_us = is_ours || meant == Meant::Neighbours && hears_group(routes, destination);
    if !is_to_us {
        return Err(Refusal::OtherAddress);
    }
    let is_claimed = source.is_unspecified() || routes.is_ours(source);
    let is_from_another = routes.may_be_another(source) || meant == Meant::Neighbours && is_claimed;
    if !is_from_another {
        return Err(Refusal::NoSource);
    }
    if station == Station::Group && meant == Meant::OneHost {
        return Err(Refusal::GroupStation);
    }
    Ok(())
}

fn hears_group(routes: &Routes, group: IpAddr) -> bool {
    matches!(group, IpAddr::V6(group) if super::hears_group(routes, group))
}

/// Whether a VLAN tag follows the Ethernet header.
#[inline]
fn is_tagged(bytes: &[u8]) -> bool {
    match ethertype(bytes) {
        Some(ETHERTYPE_IPV4 | ETHERTYPE_IPV6 | ETHERTYPE_ARP) | None => false,
        Some(other) => TAGS.contains(&other),
    }
}

/// RFC 2464, section 7.
const IPV6_GROUP: [u8; 2] = [0x33, 0x33];
/// IEEE 802.1Q, 802.1ad, and what came before it.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
