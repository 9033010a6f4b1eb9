//! MLD: reads queries about memberships of IPv6 groups (RFC 3810, RFC 9777).

use std::net::Ipv6Addr;

use rxo_frame::Duration;

use super::query::{Query, robustness_in, value_of};

/// Parses the query in an ICMPv6 message whose checksum is right. `None` if the message is not a query, or does
/// not have the length of a query (RFC 3810, section 8.1).
pub(in crate::link) fn query(message: &[u8]) -> Option<Query> {
    let [QUERY, _, _, _, high, low, _, _, rest @ ..] = message else { return None };
    let (group, rest) = rest.split_first_chunk::<16>()?;
    let (code, group) = (u16::from_be_bytes([*high, *low]), Ipv6Addr::from(*group));
    let query = Query {
        knows_sources: !rest.is_empty(),
        group: (!group.is_unspecified()).then_some(group.into()),
        sources: Vec::new(),
        within: Duration::from_millis(code.into()),
        robustness: 0,
    };
    match rest {
        [] => Some(query),
        [flags, _, high, low, rest @ ..] => {
            let count = usize::from(u16::from_be_bytes([*high, *low]));
            let sources = rest.get(..count * 16)?.chunks_exact(16);
            let ip =
                |bytes: &[u8]| bytes.first_chunk().map(|ip: &[u8; 16]| Ipv6Addr::from(*ip).into());
            Some(Query {
                sources: sources.filter_map(ip).collect(),
                within: Duration::from_millis(value_of(code.into(), 16).into()),
                robustness: robustness_in(*flags),
                ..query
            })
        }
        _ => None,
    }
}

/// Returns `true` if a query is valid: it has hop limit 1, a link-local source, and a Router Alert (RFC 3810,
/// section 6.2). `packet` begins with the IPv6 header.
pub(in crate::link) fn is_valid(hop_limit: u8, source: Ipv6Addr, packet: &[u8]) -> bool {
    hop_limit == 1 && source.is_unicast_link_local() && has_router_alert(packet)
}

/// Returns `true` if the hop-by-hop options of `packet` contain a Router Alert (RFC 2711).
fn has_router_alert(packet: &[u8]) -> bool {
    let Some((fixed, rest)) = packet.split_first_chunk::<40>() else { return false };
    let (HOP_BY_HOP, [_, units, ..]) = (fixed[6], rest) else { return false };
    let mut options = rest.get(2..8 + usize::from(*units) * 8).unwrap_or_default();
    while let [kind, rest @ ..] = options {
        options = match (*kind, rest) {
            (ROUTER_ALERT, _) => return true,
            (PAD1, _) => rest,
            (_, [bytes, data @ ..]) => data.get(usize::from(*bytes)..).unwrap_or_default(),
            _ => return false,
        };
    }
    false
}

/// The ICMPv6 type of a query, in both versions of MLD.
pub(in crate::link) const QUERY: u8 = 130;
/// The ICMPv6 type of an MLDv2 report (RFC 3810, section 5.2).
pub(in crate::link) const REPORT: u8 = 143;
/// The group of all routers that support MLDv2 (RFC 3810, section 5.2.14).
pub(in crate::link) const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);
const HOP_BY_HOP: u8 = 0;
const ROUTER_ALERT: u8 = 5;
const PAD1: u8 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(code: u16, rest: &[u8]) -> Vec<u8> {
        let group = "ff3e::8000:1".parse::<Ipv6Addr>().unwrap().octets();
        let code = code.to_be_bytes();
        [&[130, 0, 0, 0, code[0], code[1], 0, 0][..], &group, rest].concat()
    }

    #[test]
    fn versions_are_told_by_length() {
        let source = "fd00::9".parse::<Ipv6Addr>().unwrap();
        let old = query(&message(500, &[])).unwrap();
        let new =
            query(&message(0x8000, &[&[3, 125, 0, 1], &source.octets()[..]].concat())).unwrap();
        assert_eq!((old.knows_sources, old.within), (false, Duration::from_millis(500)));
        assert_eq!((new.knows_sources, new.within), (true, Duration::from_millis(32_768)));
        assert_eq!((new.robustness, new.sources), (3, vec![source.into()]));
        assert_eq!(query(&message(500, &[3, 125, 0, 1, 9])), None, "a source that is not there");
        assert_eq!(query(&message(500, &[3])), None);
    }

    /// RFC 3810, section 6.2: queries without a Router Alert are dropped.
    #[test]
    fn a_query_without_router_alert_is_invalid() {
        let packet = |next, options: [u8; 8]| {
            let mut packet = vec![0; 40];
            packet[6] = next;
            packet.extend(options);
            packet
        };
        let source = "fe80::1".parse().unwrap();
        let good = packet(0, [58, 0, 5, 2, 0, 0, 1, 0]);
        assert!(is_valid(1, source, &good));
        assert!(is_valid(1, source, &packet(0, [58, 0, 1, 0, 5, 2, 0, 0])));
        assert!(!is_valid(64, source, &good));
        assert!(!is_valid(1, "fd00::1".parse().unwrap(), &good));
        assert!(!is_valid(1, source, &packet(58, [58, 0, 5, 2, 0, 0, 1, 0])));
        assert!(!is_valid(1, source, &packet(0, [58, 0, 1, 4, 5, 2, 0, 0])));
        assert!(!is_valid(1, source, &good[..41]));
    }
}
