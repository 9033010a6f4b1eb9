//! Lists all routes and rules of a namespace, so that tests can compare them before and after a program ran.

use rxo_netlink::{Netlink, Request, attributes};

use crate::Namespace;
use crate::error::{Context, Result};

/// A route or a rule: its header as attribute 0, then its attributes, without the kernel's counters.
pub type RouteOrRule = Vec<(u16, Vec<u8>)>;

/// The length of the structures `rtmsg` and `fib_rule_hdr`, in bytes.
const HEADER_BYTES: usize = 12;

impl Namespace {
    /// Lists the routes and the rules of all tables and both IP versions, sorted.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the kernel does not list its routes or rules.
    pub fn routes_and_rules(&self) -> Result<Vec<RouteOrRule>> {
        let list = || {
            let netlink = Netlink::route()?;
            let mut all = Vec::new();
            for kind in [libc::RTM_GETRULE, libc::RTM_GETROUTE] {
                all.extend(netlink.dump(&Request::new(kind, &[0; HEADER_BYTES]))?);
            }
            std::io::Result::Ok(all)
        };
        let listed = self.run(list)?.context(|| "cannot list routes and rules".to_owned())?;
        let mut all: Vec<_> = listed.iter().map(|one| route_or_rule(one)).collect();
        all.sort();
        Ok(all)
    }
}

fn route_or_rule(one: &[u8]) -> RouteOrRule {
    let (header, rest) = one.split_at(HEADER_BYTES.min(one.len()));
    let lasting = attributes(rest).filter(|(kind, _)| *kind != libc::RTA_CACHEINFO);
    let lasting = lasting.map(|(kind, value)| (kind, value.to_vec()));
    std::iter::once((0, header.to_vec())).chain(lasting).collect()
}
