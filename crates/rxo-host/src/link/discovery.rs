//! Neighbour discovery: resolves IPv6 addresses to Ethernet addresses (RFC 4861).

use std::net::Ipv6Addr;

use etherparse::icmpv6::{Icmpv6PayloadSlice, NdpOptionSlice, NdpOptionsIterator};
use etherparse::icmpv6::{NeighborAdvertisementHeader, TYPE_NEIGHBOR_ADVERTISEMENT};
use etherparse::{Icmpv6Slice, Icmpv6Type};

use super::frames::{Envelope, group_mac};
use super::gate::Receivers;
use super::neighbours::Mac;

/// The content of a neighbour discovery message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discovery {
    /// A solicitation: a request for the Ethernet address of `target`. `source_mac` is `None` without the
    /// option for the sender's address.
    Solicitation { target: Ipv6Addr, source_mac: Option<Mac> },
    /// An advertisement: a statement of the Ethernet address of `target`. `target_mac` is `None` without the
    /// option for that address.
    Advertisement { target: Ipv6Addr, target_mac: Option<Mac>, is_answer: bool, overrides: bool },
}

impl Discovery {
    /// Parses an ICMPv6 message whose checksum is right. `None` if the message has another type or is invalid
    /// according to RFC 4861, section 7.1. A `hop_limit` of 255 is required, because it shows that no router
    /// forwarded the message.
    pub(super) fn read(message: &Icmpv6Slice<'_>, hop_limit: u8, to: Ipv6Addr) -> Option<Self> {
        if hop_limit != HOP_LIMIT {
            return None;
        }
        let discovery = match (message.icmp_type(), message.payload_slice().ok()?) {
            (Icmpv6Type::NeighborSolicitation, Icmpv6PayloadSlice::NeighborSolicitation(body)) => {
                let source_mac = mac_in(body.options_iterator(), is_source)?;
                Self::Solicitation { target: body.target_address(), source_mac }
            }
            (
                Icmpv6Type::NeighborAdvertisement(flags),
                Icmpv6PayloadSlice::NeighborAdvertisement(body),
            ) => Self::Advertisement {
                target: body.target_address(),
                target_mac: mac_in(body.options_iterator(), is_target)?,
                is_answer: flags.solicited && !to.is_multicast(),
                overrides: flags.r#override,
            },
            _ => return None,
        };
        (!discovery.target().is_multicast()).then_some(discovery)
    }

    const fn target(&self) -> Ipv6Addr {
        let (Self::Solicitation { target, .. } | Self::Advertisement { target, .. }) = self;
        *target
    }
}

/// Returns the first link-layer address in an option that `wanted` selects; `Some(None)` if there is none,
/// `None` if the options are malformed or the address is a group address.
fn mac_in<'a>(
    options: NdpOptionsIterator<'a>,
    wanted: impl Fn(&NdpOptionSlice<'a>) -> Option<&'a [u8]>,
) -> Option<Option<Mac>> {
    let mut found = None;
    for option in options {
        if let (None, Some(bytes)) = (found, wanted(&option.ok()?)) {
            let mac: Mac = bytes.try_into().ok()?;
            found = (mac[0] & 1 == 0 && mac != [0; 6]).then_some(mac);
            found?;
        }
    }
    Some(found)
}

fn is_source<'a>(option: &NdpOptionSlice<'a>) -> Option<&'a [u8]> {
    match option {
        NdpOptionSlice::SourceLinkLayerAddress(option) => Some(option.link_layer_address()),
        _ => None,
    }
}

fn is_target<'a>(option: &NdpOptionSlice<'a>) -> Option<&'a [u8]> {
    match option {
        NdpOptionSlice::TargetLinkLayerAddress(option) => Some(option.link_layer_address()),
        _ => None,
    }
}

/// Builds a solicitation for `target`, sent to `to` or, if that is `None`, to the solicited-node group of
/// `target`.
pub(super) fn solicit(
    mac: Mac,
    source: Ipv6Addr,
    target: Ipv6Addr,
    to: Option<Mac>,
) -> Option<Vec<u8>> {
    let group = solicited_node(target);
    let destination = if to.is_some() { target } else { group };
    let message = message(TYPE_NEIGHBOR_SOLICITATION, [0; 4], target, (SOURCE_OPTION, mac));
    envelope(mac, to.unwrap_or(group_mac(group.into()))).icmp(
        source.into(),
        destination.into(),
        &message,
    )
}

/// Builds a probe for `target`: a solicitation with an unspecified source and without an option (RFC 4862,
/// section 5.4.2). A host that uses `target` answers the probe. `None` if the frame cannot be written.
pub(super) fn probe(mac: Mac, target: Ipv6Addr) -> Option<Vec<u8>> {
    let group = solicited_node(target);
    let message = message(TYPE_NEIGHBOR_SOLICITATION, [0; 4], target, (SOURCE_OPTION, mac));
    let without_option = &message[..BYTES_WITHOUT_OPTION];
    envelope(mac, group_mac(group.into())).icmp(
        Ipv6Addr::UNSPECIFIED.into(),
        group.into(),
        without_option,
    )
}

/// Builds the advertisement that `target` has the address `mac`: an answer to `to`, or to all nodes if `to`
/// is `None`.
pub(super) fn advertise(
    mac: Mac,
    target: Ipv6Addr,
    to: Option<(Ipv6Addr, Mac)>,
) -> Option<Vec<u8>> {
    let flags =
        NeighborAdvertisementHeader { router: false, solicited: to.is_some(), r#override: true };
    let message =
        message(TYPE_NEIGHBOR_ADVERTISEMENT, flags.to_bytes(), target, (TARGET_OPTION, mac));
    let (destination, to) = to.unwrap_or((ALL_NODES, group_mac(ALL_NODES.into())));
    envelope(mac, to).icmp(target.into(), destination.into(), &message)
}

/// Returns the solicited-node group of `ip` (RFC 4291, section 2.7.1).
pub(super) fn solicited_node(ip: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = ip.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

const fn envelope(from: Mac, to: Mac) -> Envelope {
    Envelope { macs: Some((from, to)), hop_limit: HOP_LIMIT, traffic_class: 0 }
}

/// Builds a message: type, code and checksum; four bytes of flags; the target; one option with an address.
fn message(kind: u8, flags: [u8; 4], target: Ipv6Addr, option: (u8, Mac)) -> [u8; 32] {
    let mut message = [0; 32];
    message[0] = kind;
    message[4..8].copy_from_slice(&flags);
    message[8..24].copy_from_slice(&target.octets());
    message[24..26].copy_from_slice(&[option.0, 1]);
    message[26..].copy_from_slice(&option.1);
    message
}

/// Returns the kind of receivers of an ICMPv6 message of type `kind`.
pub(super) const fn intended_receivers(kind: u8) -> Receivers {
    match kind {
        TYPE_NEIGHBOR_SOLICITATION | TYPE_NEIGHBOR_ADVERTISEMENT => Receivers::Neighbours,
        _ => Receivers::OneHost,
    }
}

/// The multicast address of all nodes on the link.
pub(super) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const TYPE_NEIGHBOR_SOLICITATION: u8 = etherparse::icmpv6::TYPE_NEIGHBOR_SOLICITATION;
/// Type of the source link-layer address option (RFC 4861, section 4.6.1).
const SOURCE_OPTION: u8 = 1;
const TARGET_OPTION: u8 = 2;
/// Length in bytes of a solicitation without options (RFC 4861, section 4.3).
const BYTES_WITHOUT_OPTION: usize = 24;
/// The hop limit of a packet that no router has forwarded.
const HOP_LIMIT: u8 = 255;
