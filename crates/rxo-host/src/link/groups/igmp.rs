//! IGMP: reads queries about memberships of IPv4 groups (RFC 3376, RFC 9776).

use std::net::Ipv4Addr;

use rxo_frame::Duration;

use super::query::{Query, robustness_in, value_of};

/// Parses the query in an IGMP message whose checksum is right. `None` if the message is not a query, or does
/// not have the length of a query (RFC 3376, section 7.1).
pub(in crate::link) fn query(message: &[u8]) -> Option<Query> {
    let [QUERY, code, _, _, a, b, c, d, rest @ ..] = message else { return None };
    let group = Ipv4Addr::new(*a, *b, *c, *d);
    let query = Query {
        knows_sources: !rest.is_empty(),
        group: (!group.is_unspecified()).then_some(group.into()),
        sources: Vec::new(),
        within: tenths(u32::from(*code)),
        robustness: 0,
    };
    match rest {
        // An IGMPv1 query has no code; hosts answer it within 10 s.
        [] if *code == 0 => Some(Query { within: tenths(100), ..query }),
        [] => Some(query),
        [flags, _, high, low, rest @ ..] => {
            let count = usize::from(u16::from_be_bytes([*high, *low]));
            let sources = rest.get(..count * 4)?.chunks_exact(4);
            let ip =
                |bytes: &[u8]| bytes.first_chunk().map(|ip: &[u8; 4]| Ipv4Addr::from(*ip).into());
            Some(Query {
                sources: sources.filter_map(ip).collect(),
                within: tenths(value_of(u32::from(*code), 8)),
                robustness: robustness_in(*flags),
                ..query
            })
        }
        _ => None,
    }
}

const fn tenths(count: u32) -> Duration {
    Duration::from_millis(count as u64 * 100)
}

/// The type of an IGMPv3 report (RFC 3376, section 4.2).
pub(in crate::link) const REPORT: u8 = 0x22;
/// The group of all routers that support IGMPv3 (RFC 3376, section 4.2.14).
pub(in crate::link) const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);
/// The group of all systems, the destination of general queries (RFC 3376, section 4.1.12).
pub(in crate::link) const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
const QUERY: u8 = 0x11;

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &[u8]) -> Option<(bool, Option<String>, usize, u64, u8)> {
        let query = query(message)?;
        let millis = query.within.as_nanos() as u64 / 1_000_000;
        let group = query.group.map(|ip| ip.to_string());
        Some((query.knows_sources, group, query.sources.len(), millis, query.robustness))
    }

    #[test]
    fn versions_are_told_by_length_and_code() {
        let group = Some("232.1.1.1".to_owned());
        let head = [0x11, 20, 0, 0, 232, 1, 1, 1];
        let long = [&head[..], &[0x0a, 125, 0, 1, 10, 0, 0, 9]].concat();
        assert_eq!(fields(&[0x11, 0, 0, 0, 0, 0, 0, 0]), Some((false, None, 0, 10_000, 0)));
        assert_eq!(fields(&head), Some((false, group.clone(), 0, 2_000, 0)));
        assert_eq!(fields(&long), Some((true, group, 1, 2_000, 2)));
    }

    #[test]
    fn what_is_not_a_query_is_none() {
        let lies = [0x11, 20, 0, 0, 232, 1, 1, 1, 2, 125, 0, 2, 10, 0, 0, 9];
        for message in [&[0x16, 0, 0, 0, 232, 1, 1, 1][..], &[0x11; 7], &[0x11; 10], &lies, &[]] {
            assert_eq!(query(message), None, "{message:x?}");
        }
    }
}
