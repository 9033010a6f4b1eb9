//! The receiving addresses of a capture, and the host on which it was taken.
//!
//! A host does not receive the packets that it sends, so they are no part of its load. Packets that the host
//! sent according to their records are not counted in flows. For other captures, this module finds the host by
//! the flows: the host is the address that takes part in nearly all packets. If two addresses do, the peers of
//! a single conversation, the host is the address whose packets no router has forwarded (as the hop limit
//! shows), or whose checksums its network card was to complete.
//!
//! This module is separate from the flows, because it needs only the sums of flows. Memory is bounded:
//! addresses with a large share are found by the algorithm of Misra and Gries ("Finding repeated elements",
//! 1982), and then counted exactly.

use std::collections::HashMap;
use std::net::IpAddr;

use super::flows::{Flow, Flows};
use super::point::SLOTS;
use crate::advice::Delivered;

/// The number of addresses that are counted. Every address with more than one 33rd of the packets is among
/// them.
const FOLLOWED: usize = 32;
/// The threshold for listing addresses: an address is listed if it receives at least one in this number of packets.
const LISTED: u64 = 10;
/// The share of packets that counts as nearly all, in percent. The rest are broadcasts and unrelated packets.
const NEARLY_ALL: u64 = 95;
/// The initial values of the hop limit that systems use for packets that they send.
const FRESH_HOPS: [u8; 3] = [64, 128, 255];

/// The packets that one address receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) address: IpAddr,
    /// The IPv6 address of the host, whose packets count, too; `None` if it has one address.
    pub(super) also: Option<IpAddr>,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// The number of eliminated packets under the poll rule of each [`super::point::slot`].
    pub(super) eliminated: [u64; SLOTS],
}

impl Received {
    /// Adds the packets to another address of the same host.
    fn add(&mut self, other: &Self) {
        self.also = Some(other.address);
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        for (mine, theirs) in self.eliminated.iter_mut().zip(other.eliminated) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// Returns the address or both addresses, as a report names them.
    pub(super) fn name(&self) -> String {
        self.also
            .map_or_else(|| self.address.to_string(), |also| format!("{} and {also}", self.address))
    }

    /// Returns the packets and their deliveries under the poll rule of the slot.
    pub(super) fn delivered(&self, slot: usize) -> Delivered {
        let eliminated = self.eliminated.get(slot).copied().unwrap_or_default();
        let deliveries = self.packets.saturating_sub(eliminated);
        Delivered { packets: self.packets, bytes: self.bytes, deliveries }
    }
}

/// The receiving addresses of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Receivers {
    /// The host on which the capture was taken; `None` if the flows do not show the host.
    pub(super) host: Option<IpAddr>,
    /// The host first, then the addresses that receive at least a tenth of the packets, most packets first.
    pub(super) listed: Vec<Received>,
}

impl Receivers {
    /// Returns the receiving addresses of all flows.
    pub(super) fn of(flows: &Flows) -> Self {
        let total = packets(flows.iter());
        let (host, also) = hosts(flows);
        let mut addresses =
            frequent(flows.iter().map(|flow| (flow.key.destination(), flow.packets)));
        addresses.extend(host.into_iter().chain(also));
        addresses.sort_unstable();
        addresses.dedup();
        let mut listed = received(flows, &addresses);
        if let Some(other) = listed.iter().position(|one| Some(one.address) == also) {
            let other = listed.remove(other);
            listed
                .iter_mut()
                .filter(|one| Some(one.address) == host)
                .for_each(|one| one.add(&other));
        }
        listed.retain(|one| Some(one.address) == host || is_share(one.packets, total, LISTED));
        listed.sort_by_key(|one| {
            (Some(one.address) != host, core::cmp::Reverse(one.packets), one.address)
        });
        Self { host, listed }
    }
}

/// Returns `true` if `part` is at least one `share`-th of `whole`.
const fn is_share(part: u64, whole: u64, share: u64) -> bool {
    part > 0 && part.saturating_mul(share) >= whole
}

/// Returns at most [`FOLLOWED`] addresses. Every address with more than one 33rd of all packets is among
/// them.
fn frequent(packets: impl Iterator<Item = (IpAddr, u64)>) -> Vec<IpAddr> {
    let mut followed: HashMap<IpAddr, u64> = HashMap::with_capacity(FOLLOWED + 1);
    for (address, packets) in packets {
        let count = followed.entry(address).or_default();
        *count = count.saturating_add(packets);
        if followed.len() > FOLLOWED {
            let least = followed.values().copied().min().unwrap_or_default();
            followed.retain(|_, count| {
                *count -= least;
                *count > 0
            });
        }
    }
    followed.into_keys().collect()
}

/// Counts the packets that each of the sorted `addresses` receives.
fn received(flows: &Flows, addresses: &[IpAddr]) -> Vec<Received> {
    let none = |address: &IpAddr| Received {
        address: *address,
        also: None,
        packets: 0,
        bytes: 0,
        eliminated: [0; SLOTS],
    };
    let mut received: Vec<Received> = addresses.iter().map(none).collect();
    for flow in flows.iter() {
        if let Ok(place) = addresses.binary_search(&flow.key.destination()) {
            let one = &mut received[place];
            one.packets = one.packets.saturating_add(flow.packets);
            one.bytes = one.bytes.saturating_add(flow.bytes());
            for (mine, theirs) in one.eliminated.iter_mut().zip(flow.eliminated()) {
                *mine = mine.saturating_add(theirs);
            }
        }
    }
    received
}

/// The packets in which an address takes part.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    all: u64,
    sent: u64,
    /// The number of packets from the address that no router has forwarded.
    fresh: u64,
    /// The number of packets from the address whose checksums the sender's card was to complete.
    unfinished: u64,
}

impl Part {
    fn count(&mut self, flow: &Flow, sends: bool) {
        self.all = self.all.saturating_add(flow.packets);
        if sends {
            let fresh = if FRESH_HOPS.contains(&flow.hops()) { flow.packets } else { 0 };
            self.sent = self.sent.saturating_add(flow.packets);
            self.fresh = self.fresh.saturating_add(fresh);
            self.unfinished = self.unfinished.saturating_add(flow.unfinished());
        }
    }
}

/// Returns the host on which the capture was taken, if the flows show it. A host with addresses of both IP versions takes part
/// in nearly all packets with neither of them; its IPv6 address is then the second one.
fn hosts(flows: &Flows) -> (Option<IpAddr>, Option<IpAddr>) {
    let of_version =
        |is_v4| host(flows.iter().filter(move |flow| flow.key.source().is_ipv4() == is_v4));
    if let Some(host) = host(flows.iter()) {
        return (Some(host), None);
    }
    match (of_version(true), of_version(false)) {
        (Some(host), Some(also)) => (Some(host), Some(also)),
        _ => (None, None),
    }
}

/// Returns the sum of the packets of the flows.
fn packets<'a>(flows: impl Iterator<Item = &'a Flow>) -> u64 {
    flows.fold(0, |sum, flow| sum.saturating_add(flow.packets))
}

/// Returns the address that takes part in nearly all packets of `flows`, and is that of the host on which the capture was taken;
/// `None` if the flows do not show it.
fn host<'a>(flows: impl Iterator<Item = &'a Flow> + Clone) -> Option<IpAddr> {
    let total = packets(flows.clone());
    let ends =
        |flow: &Flow| [(flow.key.source(), flow.packets), (flow.key.destination(), flow.packets)];
    let mut parts: HashMap<IpAddr, Part> = frequent(flows.clone().flat_map(ends))
        .into_iter()
        .map(|end| (end, Part::default()))
        .collect();
    for flow in flows {
        let (source, destination) = (flow.key.source(), flow.key.destination());
        if let Some(part) = parts.get_mut(&source) {
            part.count(flow, true);
        }
        if source != destination
            && let Some(part) = parts.get_mut(&destination)
        {
            part.count(flow, false);
        }
    }
    let takes_part =
        |part: &Part| u128::from(part.all) * 100 >= u128::from(total) * u128::from(NEARLY_ALL);
    let mut centers: Vec<(IpAddr, Part)> =
        parts.into_iter().filter(|(_, part)| total > 0 && takes_part(part)).collect();
    centers.sort_unstable_by_key(|(address, _)| *address);
    match centers[..] {
        [(host, _)] => Some(host),
        [(one, a), (other, b)] if a.sent > 0 && b.sent > 0 => {
            let by = |of: fn(&Part) -> u64| apart((of(&a), a.sent), (of(&b), b.sent));
            let is_first = match (by(|part| part.unfinished), by(|part| part.fresh)) {
                (Some(left), Some(right)) if left != right => return None,
                (left, right) => left.or(right)?,
            };
            Some(if is_first { one } else { other })
        }
        _ => None,
    }
}

/// Compares two senders by the share of their packets with a property. Each pair is the number of packets with
/// the property, and the number of all packets. Returns `true` if nearly all packets of the first sender and
/// nearly none of the second have the property, `false` for the contrary, and `None` if the shares do not
/// decide.
fn apart(one: (u64, u64), other: (u64, u64)) -> Option<bool> {
    let is_most = |(part, all): (u64, u64)| part > 0 && part >= all - all / LISTED;
    let is_least = |(part, all): (u64, u64)| part <= all / LISTED;
    match (is_most(one) && is_least(other), is_least(one) && is_most(other)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rxo_frame::LinkKind;
    use rxo_testkit::{Packet, seg};

    use super::super::flows::Sighting;
    use super::super::packet_kind::PacketKind;
    use super::*;

    fn flows(packets: &[(Packet, u64)]) -> Flows {
        let mut flows = Flows::new(1_000);
        for (packet, times) in packets {
            let bytes = packet.bytes();
            let PacketKind::Segment(segment) = PacketKind::read(LinkKind::Ethernet, &bytes) else {
                panic!()
            };
            let seen = Sighting { at_ns: 0, file: 0 };
            let number = flows.find_or_add(&segment, seen);
            let flow = flows.get_mut(number).unwrap();
            for _ in 0..*times {
                flow.count(&segment, &bytes, bytes.len() as u64, seen);
            }
        }
        flows
    }

    fn source(packet: &Packet) -> IpAddr {
        let PacketKind::Segment(segment) = PacketKind::read(LinkKind::Ethernet, &packet.bytes())
        else {
            panic!()
        };
        segment.key.source()
    }

    #[test]
    fn the_end_of_all_conversations_is_the_host() {
        let (one, other) = (seg().host(1).ttl(64), seg().host(2).ttl(64));
        let host = source(&one.clone().reply());
        assert_eq!(host, source(&other.clone().reply()), "both talk with the same host");
        let all = [(one.clone(), 30), (other, 30), (one.reply().pure_ack(), 20)];
        let receivers = Receivers::of(&flows(&all));
        assert_eq!(receivers.host, Some(host));
        assert_eq!((receivers.listed[0].address, receivers.listed[0].packets), (host, 60));
    }

    #[test]
    fn of_two_ends_the_one_whose_packets_no_router_forwarded_is_the_host() {
        let far = seg().ttl(57).len(1000);
        let own = seg().reply().ttl(64).pure_ack();
        let receivers = Receivers::of(&flows(&[(far.clone(), 50), (own.clone(), 25)]));
        assert_eq!(receivers.host, Some(source(&own)));
        assert_eq!(receivers.listed[0].packets, 50);
        let lan = Receivers::of(&flows(&[(far.ttl(64), 50), (own, 25)]));
        assert_eq!(lan.host, None);
        assert_eq!(lan.listed.iter().map(|one| one.packets).collect::<Vec<_>>(), [50, 25]);
    }

    #[test]
    fn many_receivers_are_not_listed() {
        let packets: Vec<(Packet, u64)> = (0..200).map(|n| (seg().host(n).reply(), 3)).collect();
        let receivers = Receivers::of(&flows(&packets));
        assert!(receivers.listed.len() <= 1, "{receivers:?}");
    }

    #[test]
    fn a_host_with_addresses_of_both_versions_is_one_host() {
        let v4 = |host: u32| seg().host(host).ttl(57).len(1000);
        let v6 = |host: u32| v4(host).v6();
        let of = |peers: [Packet; 4]| {
            let acks = peers.clone().map(|peer| (peer.reply().pure_ack(), 20));
            flows(&[peers.map(|peer| (peer, 40)), acks].concat())
        };
        let receivers = Receivers::of(&of([v4(1), v4(2), v6(3), v6(4)]));
        let [host, also] = [v4(1), v6(3)].map(|peer| source(&peer.reply()));
        assert_eq!(receivers.host, Some(host));
        let first = &receivers.listed[0];
        assert_eq!((first.packets, first.name()), (160, format!("{host} and {also}")));
        assert!(receivers.listed.iter().skip(1).all(|one| one.packets == 20), "{receivers:?}");
    }
}
