//! Messages of IGMP (RFC 1112, 2236, 3376) and MLD (RFC 2710, 3810).
//!
//! Both protocols carry the same information with addresses of different length, and the records of their
//! newest versions have the same layout. A message that has a wrong checksum or ends early is ignored (RFC
//! 4541, section 2.1.1, item 6).

use std::net::IpAddr;

use rxo_wire::checksum::Sum;

use super::Family;
use crate::switch::MacAddress;
use crate::switch::packet::{ICMPV6, IGMP, Ip, Packet, Upper};

/// Maximum number of records that are read from one message. A frame of 1,514 bytes can contain 184 records.
const MOST_RECORDS: usize = 256;

/// A message about memberships.
#[derive(Clone, Copy, Debug)]
pub(super) enum MembershipMessage<'m> {
    /// A router asks which groups have members (a general query).
    GeneralQuery(Family),
    /// Hosts report that they join or leave groups.
    Members(Members<'m>),
}

/// A change of one membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) group: MacAddress,
    /// `true` if the host joins the group, `false` if it leaves the group.
    pub(super) joins: bool,
}

/// The membership changes in a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Members<'m> {
    One(Option<Member>),
    /// Records of IGMPv3 or MLDv2.
    Records {
        family: Family,
        bytes: &'m [u8],
        left: usize,
    },
}

/// Parses the message in a packet; `None` if the message does not concern memberships. Also returns `None` for
/// a query for one group, because such a query is forwarded like other frames of the group.
pub(super) fn read<'m>(packet: &Packet<'m>) -> Option<MembershipMessage<'m>> {
    let Packet::Ip(Ip { source, destination, upper }) = *packet else { return None };
    let Upper::First { protocol, is_fragment: false, bytes } = upper else { return None };
    let (family, pseudo_header) = match (protocol, source, destination) {
        (IGMP, IpAddr::V4(_), _) => (Family::V4, Sum::ZERO),
        (ICMPV6, IpAddr::V6(source), IpAddr::V6(destination)) => {
            let addresses = [source, destination].map(|ip| Sum::of(&ip.octets()));
            let [source, destination] = addresses;
            let rest = Sum::longs([u32::try_from(bytes.len()).ok()?, ICMPV6.into()]);
            (Family::V6, source.plus(destination).plus(rest))
        }
        _ => return None,
    };
    let message = read_message(family, bytes)?;
    (pseudo_header.plus(Sum::of(bytes)).fold() == u16::MAX).then_some(message)
}

fn read_message(family: Family, message: &[u8]) -> Option<MembershipMessage<'_>> {
    let one = |joins| {
        let group = group_at(family, message.get(family.group_at()..)?)?;
        Some(MembershipMessage::Members(Members::One(Some(Member { group, joins }))))
    };
    match (family, *message.first()?) {
        (Family::V4, 0x11) | (Family::V6, 130) => {
            let group = message.get(family.group_at()..)?.get(..family.address_bytes())?;
            let is_general = group.iter().all(|byte| *byte == 0);
            is_general.then_some(MembershipMessage::GeneralQuery(family))
        }
        (Family::V4, 0x12 | 0x16) | (Family::V6, 131) => one(true),
        (Family::V4, 0x17) | (Family::V6, 132) => one(false),
        (Family::V4, 0x22) | (Family::V6, 143) => {
            let (head, bytes) = message.split_first_chunk::<8>()?;
            let left = usize::from(u16::from_be_bytes([head[6], head[7]]));
            let members = Members::Records { family, bytes, left: left.min(MOST_RECORDS) };
            Some(MembershipMessage::Members(members))
        }
        _ => None,
    }
}

/// Yields the membership change of each record that contains a change.
impl Iterator for Members<'_> {
    type Item = Member;

    fn next(&mut self) -> Option<Member> {
        match self {
            Self::One(member) => member.take(),
            Self::Records { family, bytes, left } => {
                while *left > 0 {
                    *left -= 1;
                    let (record, rest) = record(*family, bytes)?;
                    *bytes = rest;
                    if record.is_some() {
                        return record;
                    }
                }
                None
            }
        }
    }
}

/// Parses the record at the start of `bytes`. Returns the membership change in the record, if there is one, and
/// the bytes after the record. Returns `None` if the record is incomplete.
fn record(family: Family, bytes: &[u8]) -> Option<(Option<Member>, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    let sources = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let (address_bytes, auxiliary) = (family.address_bytes(), usize::from(head[1]) * 4);
    let behind = rest.get(address_bytes * (1 + sources) + auxiliary..)?;
    let joins = match (head[0], sources) {
        // IS_INCLUDE, IS_EXCLUDE, TO_INCLUDE, TO_EXCLUDE, ALLOW, BLOCK (RFC 3376, section 4.2.12). To include no source
        // is to leave.
        (2 | 4, _) => Some(true),
        (1 | 3 | 5, 1..) => Some(true),
        (3, 0) => Some(false),
        _ => None,
    };
    let group = group_at(family, rest)?;
    Some((joins.map(|joins| Member { group, joins }), behind))
}

/// Returns the Ethernet address of the group whose IP address is at the start of `bytes` (RFC 1112, section
/// 6.4; RFC 2464, section 7); `None` if `bytes` is too short.
fn group_at(family: Family, bytes: &[u8]) -> Option<MacAddress> {
    let address = bytes.get(..family.address_bytes())?;
    let [.., a, b, c, d] = address else { return None };
    Some(MacAddress(match family {
        Family::V4 => [0x01, 0x00, 0x5e, b & 0x7f, *c, *d],
        Family::V6 => [0x33, 0x33, *a, *b, *c, *d],
    }))
}

impl Family {
    const fn address_bytes(self) -> usize {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
        }
    }

    /// Returns the offset of the group's address in a query, or in a message about one group.
    const fn group_at(self) -> usize {
        match self {
            Self::V4 => 4,
            Self::V6 => 8,
        }
    }
}
