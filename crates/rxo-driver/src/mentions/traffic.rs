//! Filters of traffic control that see what arrives. Those for what leaves go on to see it at the nic.

use std::io;

use rxo_netlink::{Netlink, Request, attribute, u32_at};

use super::{By, Mention};
use crate::handover::Link;

pub(super) fn mentions(link: &Link) -> io::Result<Vec<Mention>> {
    let netlink = Netlink::route()?;
    let mut found = Vec::new();
    for parent in PARENTS {
        let mut header = [0; HEADER_BYTES];
        header[4..8].copy_from_slice(&link.index.to_ne_bytes());
        header[12..16].copy_from_slice(&parent.to_ne_bytes());
        let filters = match netlink.dump(&Request::new(libc::RTM_GETTFILTER, &header)) {
            // There is no such place, or a kernel without traffic control.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOENT)
                ) =>
            {
                Vec::new()
            }
            other => other?,
        };
        found.extend(filters.iter().filter_map(|filter| mention(filter, &link.name)));
    }
    // Both places are the same one where the qdisc is `clsact`.
    found.dedup();
    Ok(found)
}

fn mention(filter: &[u8], name: &str) -> Option<Mention> {
    let (header, rest) = filter.split_at_checked(HEADER_BYTES)?;
    let preference = u32_at(header, 16)? >> 16;
    let kind = String::from_utf8_lossy(attribute(rest, KIND)?);
    let kind = kind.trim_end_matches('\0');
    let place = format!("`tc filter` {preference} ({kind}) at the ingress of {name}");
    Some(Mention { place, by: By::Ingress })
}

/// `tcmsg`.
const HEADER_BYTES: usize = 20;
/// The qdiscs `ingress` and `clsact`.
const PARENTS: [u32; 2] = [0xffff_0000, 0xffff_fff2];
/// `TCA_KIND`.
const KIND: u16 = 1;
