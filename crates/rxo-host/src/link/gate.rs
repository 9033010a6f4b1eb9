//! The gate: refuses every frame that is not for this host.
//!
//! Every delivery passes the gate before any other code handles it: single segments, aggregates, pure ACKs,
//! ARP, neighbour discovery and other ICMP. So there is a single list of reasons to refuse, checked in a fixed
//! order and counted. A device in promiscuous mode also delivers frames for other hosts, which this host must
//! not answer.

use std::net::IpAddr;

use rxo_frame::{Frame, LinkKind};
use rxo_wire::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, FlowKey, ethertype};

use super::frames::{BROADCAST, ETHERTYPE_ARP};
use super::groups::{Groups, igmp};
use super::neighbours::Mac;
use super::routes::Routes;

rxo_frame::counters! {
    /// Numbers of refused deliveries, by the first reason found.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct GateCounters {
        /// Number of deliveries sent to another station's Ethernet address.
        pub other_station: u64,
        /// Number of unicast packets that were sent to an Ethernet broadcast or group address (RFC 1122,
        /// section 3.3.6).
        pub group_station: u64,
        /// Number of deliveries with a VLAN tag. This host does not support VLANs.
        pub other_vlan: u64,
        /// Number of deliveries for an IP address that does not belong to this host.
        pub other_address: u64,
        /// Number of deliveries from a source address that no other host can have: a group, a broadcast, a
        /// loopback address, or an address of this host (RFC 1122, section 3.2.1.3; RFC 9293, section 3.9.2.3).
        pub no_source: u64,
        /// Number of deliveries with a wrong IP, TCP or ICMP checksum.
        pub bad_checksum: u64,
    }
}

impl GateCounters {
    /// Returns the sum of all counters.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.named().map(|(_, count)| count).sum()
    }
}

/// The reason for which a delivery is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    OtherStation,
    GroupStation,
    OtherVlan,
    OtherAddress,
    NoSource,
    BadChecksum,
}

/// The kind of receivers of a message. The kind determines the valid addresses of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receivers {
    /// One host: echo requests and ICMP errors.
    OneHost,
    /// A connection: its destination is an address of this host, or a joined group with the connection's
    /// source.
    Connection,
    /// Neighbours: the destination may be a group, and the source may be unspecified or an address of this
    /// host. This kind also applies to messages about groups.
    Neighbours,
}

/// The Ethernet destination of a frame: this host, or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Station {
    Us,
    Group,
}

/// The gate of one link: decides which frames are for this host.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    kind: LinkKind,
    mac: Mac,
    /// The flow that last passed the address check. Further packets of this flow skip the check.
    last: FlowKey,
    pub(super) counters: GateCounters,
}

impl Gate {
    pub(super) fn new(kind: LinkKind, mac: Mac) -> Self {
        // A key that matches no flow: a frame on a VLAN is refused before its key is compared.
        let last = FlowKey::NONE.on_device_vlan(0);
        Self { kind, mac, last, counters: GateCounters::default() }
    }

    /// Clears the cached flow. Must be called when the addresses or groups of this host change.
    pub(super) fn forget_last(&mut self) {
        self.last = FlowKey::NONE.on_device_vlan(0);
    }

    /// Returns `true` if a delivery may pass. All its packets have the link header of `frame` and the
    /// addresses and receivers in `addressed`; `None` skips the address check. `is_right` verifies the
    /// checksums; it is called last, because it may read the whole frame. Counts a refusal.
    #[inline]
    pub(super) fn admits<B: AsRef<[u8]>>(
        &mut self,
        ours: Ours<'_>,
        frame: &Frame<B>,
        addressed: Option<(&FlowKey, Receivers)>,
        is_right: impl FnOnce() -> bool,
    ) -> bool {
        let checked = self.check_link(frame).and_then(|station| {
            if let Some((key, meant)) = addressed {
                self.check_addresses(ours, station, key, meant)?;
            }
            if is_right() { Ok(()) } else { Err(Refusal::BadChecksum) }
        });
        checked.inspect_err(|refusal| self.refuse(*refusal)).is_ok()
    }

    /// Returns the Ethernet destination of `frame`. Refuses a frame with a VLAN tag or for another station.
    #[inline]
    fn check_link<B: AsRef<[u8]>>(&self, frame: &Frame<B>) -> Result<Station, Refusal> {
        let bytes = frame.bytes();
        if self.kind == LinkKind::RawIp {
            return if frame.vlan.is_some() { Err(Refusal::OtherVlan) } else { Ok(Station::Us) };
        }
        let station = match bytes.first_chunk::<6>() {
            Some(mac) if *mac == self.mac => Station::Us,
            Some(mac) if is_group(mac) => Station::Group,
            _ => return Err(Refusal::OtherStation),
        };
        if frame.vlan.is_some() || is_tagged(bytes) {
            return Err(Refusal::OtherVlan);
        }
        Ok(station)
    }

    /// Checks the addresses of a packet, unless its flow is the flow that last passed this check.
    #[inline]
    fn check_addresses(
        &mut self,
        ours: Ours<'_>,
        station: Station,
        key: &FlowKey,
        meant: Receivers,
    ) -> Result<(), Refusal> {
        let is_known =
            meant == Receivers::Connection && station == Station::Us && self.last == *key;
        if !is_known {
            check_addresses(ours, station, key, meant)?;
            if meant == Receivers::Connection {
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

/// Returns `true` if the addresses in the flow `key` are valid for a packet to this host alone.
pub(super) fn may_arrive(ours: Ours<'_>, key: &FlowKey) -> bool {
    check_addresses(ours, Station::Us, key, Receivers::OneHost).is_ok()
}

/// Refuses a packet that is not for this host, by the addresses in `key` and by the packet's Ethernet
/// destination.
fn check_addresses(
    ours: Ours<'_>,
    station: Station,
    key: &FlowKey,
    meant: Receivers,
) -> Result<(), Refusal> {
    let (source, destination) = (key.source(), key.destination());
    let Ours { routes, groups } = ours;
    let is_ours = routes.is_ours(destination);
    let is_to_group = match meant {
        Receivers::OneHost => false,
        Receivers::Connection => groups.wants(source, destination),
        Receivers::Neighbours => ours.is_neighbour_group(destination),
    };
    if !is_ours && !is_to_group {
        return Err(Refusal::OtherAddress);
    }
    let is_claimed = source.is_unspecified() || routes.is_ours(source);
    let is_from_another =
        routes.may_be_another(source) || meant == Receivers::Neighbours && is_claimed;
    if !is_from_another {
        return Err(Refusal::NoSource);
    }
    if station == Station::Group && meant != Receivers::Neighbours && is_ours {
        return Err(Refusal::GroupStation);
    }
    Ok(())
}

/// The addresses and groups of this host.
#[derive(Clone, Copy)]
pub(super) struct Ours<'a> {
    pub(super) routes: &'a Routes,
    pub(super) groups: &'a Groups,
}

impl Ours<'_> {
    /// Returns `true` if messages of neighbours to `group` are for this host.
    fn is_neighbour_group(self, group: IpAddr) -> bool {
        let is_basic = match group {
            IpAddr::V4(group) => group == igmp::ALL_SYSTEMS,
            IpAddr::V6(group) => super::is_neighbour_group(self.routes, group),
        };
        is_basic || self.groups.has(group)
    }
}

/// Returns `true` if `mac` is the broadcast address, or the address of an IPv4 or IPv6 multicast group.
fn is_group(mac: &Mac) -> bool {
    *mac == BROADCAST || mac[..2] == IPV6_GROUP || mac[..3] == IPV4_GROUP && mac[3] < 0x80
}

/// Returns `true` if a VLAN tag follows the Ethernet addresses.
#[inline]
fn is_tagged(bytes: &[u8]) -> bool {
    match ethertype(bytes) {
        Some(ETHERTYPE_IPV4 | ETHERTYPE_IPV6 | ETHERTYPE_ARP) | None => false,
        Some(other) => TAGS.contains(&other),
    }
}

/// The first bits of the Ethernet address of an IPv4 group; a zero bit and 23 bits of the group follow (RFC
/// 1112, section 6.4).
const IPV4_GROUP: [u8; 3] = [0x01, 0x00, 0x5e];
/// The first bytes of the Ethernet address of an IPv6 group (RFC 2464, section 7).
const IPV6_GROUP: [u8; 2] = [0x33, 0x33];
/// EtherTypes of VLAN tags: IEEE 802.1Q, 802.1ad, and the older one for stacked tags.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
