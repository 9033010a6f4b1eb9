//! Route through an interface, in any table, with its metrics and next hops.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use rxo_netlink::{Request, u32_at};

use super::advertised::Advertised;
use super::item::Item;

/// A route, as the kernel listed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route(pub(super) Item);

/// The length of `rtmsg` in bytes: family, lengths of destination and source, type of service, table,
/// protocol, scope, type, flags.
pub(super) const HEADER_BYTES: usize = 12;
const TABLE_AT: usize = 4;
const PROTOCOL_AT: usize = 5;
const TYPE_AT: usize = 7;
const FLAGS_AT: usize = 8;

/// The length of `rtnexthop` in bytes: its own length, flags, weight, interface; attributes follow.
const HOP_HEADER_BYTES: usize = 8;

impl Route {
    pub(super) fn read(shown: &[u8]) -> Option<Self> {
        Item::read(shown, HEADER_BYTES).map(Self)
    }

    /// Returns `true` if the route must be moved: a user or program configured it, or it is the prefix route of a
    /// router advertisement. Other routes need not be moved, because the kernel creates them for each address.
    pub(super) fn moves(&self) -> bool {
        let flags = u32_at(&self.0.header, FLAGS_AT).unwrap_or(0);
        let is_prefix = self.0.is_ipv6()
            && self.0.header[TYPE_AT] == libc::RTN_UNICAST
            && self.lifetime().is_some();
        (self.is_set() || is_prefix) && flags & libc::RTM_F_CLONED == 0
    }

    /// Returns `true` if the kernel did not create the route by itself.
    pub(super) fn is_set(&self) -> bool {
        self.0.header[PROTOCOL_AT] != libc::RTPROT_KERNEL
    }

    /// Returns the default route that a router advertisement created, with its lifetime reduced by `elapsed`.
    /// `None` for any other route, and if it has expired.
    pub(super) fn advertised(&self, elapsed: Duration) -> Option<Advertised> {
        let Item { header, .. } = &self.0;
        let is_it = self.0.is_ipv6() && header[PROTOCOL_AT] == ADVERTISEMENT && header[1] == 0;
        let IpAddr::V6(gateway) = self.0.ip(libc::RTA_GATEWAY).filter(|_| is_it)? else {
            return None;
        };
        let metric = self.0.number(libc::RTA_PRIORITY)?;
        let preference = self.0.attribute(PREFERENCE).and_then(|value| value.first().copied());
        let elapsed = u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX);
        let seconds = match self.lifetime() {
            None => None,
            Some(seconds) => Some(seconds.checked_sub(elapsed)?),
        };
        Some(Advertised { gateway, metric, preference: preference.unwrap_or(0), seconds })
    }

    /// Returns the route's lifetime in seconds when it was listed; `None` if it is unlimited.
    fn lifetime(&self) -> Option<u32> {
        seconds_left(self.0.attribute(libc::RTA_CACHEINFO)?)
    }

    /// Returns `true` if the route has a gateway, which requires that a route to the gateway exists first.
    pub(super) fn has_gateway(&self) -> bool {
        let is_gateway = |kind: u16| [libc::RTA_GATEWAY, VIA, libc::RTA_MULTIPATH].contains(&kind);
        self.0.attributes().any(|(kind, _)| is_gateway(kind))
    }

    /// Returns the preferred source address; `None` if the route has none.
    pub(super) fn source(&self) -> Option<IpAddr> {
        self.0.ip(libc::RTA_PREFSRC)
    }

    /// Builds the request that adds the route with the interface `to` in place of `from`. Existing routes are
    /// not replaced. A next hop object is expanded to its gateway. `None` if the route has expired.
    pub(super) fn add_by(&self, (from, to): (u32, u32), elapsed: Duration) -> Option<Request> {
        self.add(elapsed, |kind, value| match kind {
            NEXT_HOP_OBJECT => None,
            libc::RTA_OIF if u32_at(value, 0) == Some(from) => Some(to.to_ne_bytes().to_vec()),
            libc::RTA_MULTIPATH => Some(by_other_interface(&self.own_hops(value, from), from, to)),
            _ => Some(value.to_vec()),
        })
    }

    /// Returns `true` if the route refers to a next hop object.
    pub(super) fn has_object(&self) -> bool {
        self.0.attribute(NEXT_HOP_OBJECT).is_some()
    }

    /// Builds the request that adds the route again, with the interface index `to` in place of `from`. Keeps
    /// a next hop object only if both indices are equal. `None` if the route's lifetime is over after
    /// `elapsed`.
    pub(super) fn add_back(&self, (from, to): (u32, u32), elapsed: Duration) -> Option<Request> {
        if from != to || !self.has_object() {
            return self.add_by((from, to), elapsed);
        }
        // The next hop object contains these attributes too, and the kernel refuses a request that has both.
        let described =
            [libc::RTA_OIF, libc::RTA_GATEWAY, VIA, libc::RTA_MULTIPATH, ENCAP_TYPE, ENCAP];
        self.add(elapsed, |kind, value| (!described.contains(&kind)).then(|| value.to_vec()))
    }

    /// Builds the request that removes the route that [`add_back`](Self::add_back) adds with the same `way`;
    /// `None` if `add_back` adds none. If both indices of `way` are equal, the request removes the route as
    /// listed.
    pub(super) fn remove(&self, way: (u32, u32)) -> Option<Request> {
        let added = self.add_back(way, Duration::ZERO)?;
        Some(added.with_kind(libc::RTM_DELROUTE))
    }

    /// Returns the index of the outgoing interface; of a route with several next hops, the interface of the
    /// first. `None` if the route has no interface.
    pub(super) fn interface(&self) -> Option<u32> {
        let first = || u32_at(next_hops(self.0.attribute(libc::RTA_MULTIPATH)?).next()?, 4);
        self.0.number(libc::RTA_OIF).or_else(first)
    }

    /// Returns `true` if a next hop of the route leaves by the interface with this index.
    pub(super) fn leaves_by(&self, index: u32) -> bool {
        self.0.number(libc::RTA_OIF) == Some(index)
            || self
                .0
                .attribute(libc::RTA_MULTIPATH)
                .is_some_and(|hops| next_hops(hops).any(|hop| u32_at(hop, 4) == Some(index)))
    }

    /// Returns the next hops for a request: all of an IPv4 route; of an IPv6 route those through the
    /// interface with this index. The kernel treats each next hop of an IPv6 route as a route, and would
    /// refuse all if one existed already.
    fn own_hops(&self, hops: &[u8], index: u32) -> Vec<u8> {
        let is_meant = |hop: &&[u8]| !self.0.is_ipv6() || u32_at(hop, 4) == Some(index);
        next_hops(hops).filter(is_meant).flat_map(padded).collect()
    }

    fn add(
        &self,
        elapsed: Duration,
        change: impl Fn(u16, &[u8]) -> Option<Vec<u8>>,
    ) -> Option<Request> {
        let mut header = self.0.header.clone();
        let flags = u32_at(&header, FLAGS_AT)? & ONLINK;
        header[FLAGS_AT..].copy_from_slice(&flags.to_ne_bytes());
        let flags = libc::NLM_F_CREATE | libc::NLM_F_APPEND;
        let mut request = Request::new(libc::RTM_NEWROUTE, &header).flags(flags);
        for (kind, value) in self.0.attributes() {
            if kind != libc::RTA_CACHEINFO {
                let changed = change(kind, value).map(|value| (kind, value));
                request = request.attributes(changed.as_slice());
            } else if let Some(seconds) = seconds_left(value) {
                let left = seconds.checked_sub(u32::try_from(elapsed.as_secs()).ok()?)?;
                request = request.attribute(EXPIRES, &left.to_ne_bytes());
            }
        }
        Some(request)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Item { header, .. } = &self.0;
        match self.0.ip(libc::RTA_DST) {
            Some(destination) => write!(f, "{destination}/{}", header[1])?,
            None => f.write_str(if self.0.is_ipv6() { "default (IPv6)" } else { "default" })?,
        }
        if let Some(gateway) = self.0.ip(libc::RTA_GATEWAY) {
            write!(f, " via {gateway}")?;
        }
        if self.0.attribute(libc::RTA_MULTIPATH).is_some() {
            f.write_str(" by several ways")?;
        }
        if let Some(metric) = self.0.number(libc::RTA_PRIORITY) {
            write!(f, " metric {metric}")?;
        }
        let table = self.0.number(libc::RTA_TABLE).unwrap_or_else(|| u32::from(header[TABLE_AT]));
        if table == u32::from(libc::RT_TABLE_MAIN) { Ok(()) } else { write!(f, " table {table}") }
    }
}

/// Iterates over the next hops of a multipath route. Stops at an invalid next hop.
fn next_hops(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(rest.get(..2)?.try_into().ok()?));
        let hop = rest.get(..length).filter(|hop| hop.len() >= HOP_HEADER_BYTES)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(hop)
    })
}

/// Returns a next hop, padded to a multiple of 4 bytes.
fn padded(hop: &[u8]) -> Vec<u8> {
    let mut bytes = hop.to_vec();
    bytes.resize(hop.len().next_multiple_of(4), 0);
    bytes
}

/// Returns the next hops with the interface `from` replaced by `to`, and without the state flags that the
/// kernel adds.
fn by_other_interface(hops: &[u8], from: u32, to: u32) -> Vec<u8> {
    let mut changed = Vec::with_capacity(hops.len());
    for hop in next_hops(hops) {
        let begin = changed.len();
        changed.extend_from_slice(hop);
        changed[begin + 2] &= ONLINK as u8;
        if u32_at(hop, 4) == Some(from) {
            changed[begin + 4..begin + 8].copy_from_slice(&to.to_ne_bytes());
        }
        changed.resize(changed.len().next_multiple_of(4), 0);
    }
    changed
}

/// Returns the lifetime of a route in seconds, from `rta_cacheinfo`; `None` if unlimited.
fn seconds_left(cache: &[u8]) -> Option<u32> {
    let ticks = u32_at(cache, 8)?.cast_signed();
    (ticks > 0).then(|| ticks.unsigned_abs().div_ceil(TICKS_A_SECOND))
}

/// The value of `USER_HZ`: ticks per second of times in netlink, the same on every architecture.
const TICKS_A_SECOND: u32 = 100;
// linux/rtnetlink.h.
const ONLINK: u32 = 4;
const VIA: u16 = 18;
const ENCAP_TYPE: u16 = 21;
const ENCAP: u16 = 22;
const EXPIRES: u16 = 23;
const PREFERENCE: u16 = 20;
const NEXT_HOP_OBJECT: u16 = 30;
/// The protocol number `RTPROT_RA`: the route comes from a router advertisement.
const ADVERTISEMENT: u8 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(flags: u8, index: u32, rest: &[u8]) -> Vec<u8> {
        let length = (HOP_HEADER_BYTES + rest.len()) as u16;
        [&length.to_ne_bytes()[..], &[flags, 3], &index.to_ne_bytes(), rest].concat()
    }

    #[test]
    fn only_the_hops_by_the_interface_change() {
        let hops = [hop(1, 7, &[1; 8]), hop(4, 9, &[2; 8])].concat();
        let expected = [hop(0, 20, &[1; 8]), hop(4, 9, &[2; 8])].concat();
        assert_eq!(by_other_interface(&hops, 7, 20), expected);
    }

    #[test]
    fn next_hops_that_cannot_be_end_the_list() {
        for bytes in [&[][..], &[3], &[3, 0, 0, 0], &[200, 0, 0, 0, 1, 0, 0, 0]] {
            assert_eq!(next_hops(bytes).count(), 0);
        }
    }
}
