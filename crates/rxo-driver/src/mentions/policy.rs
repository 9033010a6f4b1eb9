//! Rules of policy routing (`ip rule`). The kernel binds them to any interface that has the name.

use std::io;

use rxo_netlink::{Netlink, Request, attribute, u32_at};

use super::{Mention, ReferenceKind};
use crate::handover::Link;

pub(super) fn mentions(link: &Link) -> io::Result<Vec<Mention>> {
    let rules = Netlink::route()?.dump(&Request::new(libc::RTM_GETRULE, &[0; HEADER_BYTES]))?;
    let name = [link.name.as_bytes(), &[0]].concat();
    let is_it = |rest: &&[u8]| NAMES.iter().any(|kind| attribute(rest, *kind) == Some(&name));
    let found = rules.iter().filter_map(|rule| rule.get(HEADER_BYTES..)).filter(is_it);
    let priority = |rest| attribute(rest, PRIORITY).and_then(|value| u32_at(value, 0)).unwrap_or(0);
    let mention =
        |rest| Mention { place: format!("`ip rule` {}", priority(rest)), by: ReferenceKind::Name };
    Ok(found.map(mention).collect())
}

/// The length of `fib_rule_hdr`, the header of rules of policy routing, in bytes.
const HEADER_BYTES: usize = 12;
// linux/fib_rules.h: `iif` and `oif`.
const NAMES: [u16; 2] = [3, 17];
const PRIORITY: u16 = 6;
