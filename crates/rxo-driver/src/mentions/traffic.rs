//! Filters of traffic control (`tc`) at the ingress. Filters at the egress still see all packets, because
//! packets leave by the nic.

use std::io;

use rxo_netlink::{Netlink, Request, attribute, u32_at};

use super::{Mention, ReferenceKind};
use crate::handover::Link;

pub(super) fn mentions(link: &Link) -> io::Result<Vec<Mention>> {
    let netlink = Netlink::route()?;
    let mut found = Vec::new();
    for parent in PARENTS {
        let mut header = [0; HEADER_BYTES];
        header[4..8].copy_from_slice(&link.index.to_ne_bytes());
        header[12..16].copy_from_slice(&parent.to_ne_bytes());
        let filters = match netlink.dump(&Request::new(libc::RTM_GETTFILTER, &header)) {
            // The qdisc does not exist, or the kernel has no traffic control.
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
    // With the qdisc `clsact` both parents list the same filters.
    found.dedup();
    Ok(found)
}

fn mention(filter: &[u8], name: &str) -> Option<Mention> {
    let (header, rest) = filter.split_at_checked(HEADER_BYTES)?;
    let preference = u32_at(header, 16)? >> 16;
    let kind = String::from_utf8_lossy(attribute(rest, KIND)?);
    let kind = kind.trim_end_matches('\0');
    let place = format!("`tc filter` {preference} ({kind}) at the ingress of {name}");
    Some(Mention { place, by: ReferenceKind::Ingress })
}

/// The length of `tcmsg`, the header of traffic control messages, in bytes.
const HEADER_BYTES: usize = 20;
/// The parents (handles) of ingress filters in the qdiscs `ingress` and `clsact`.
const PARENTS: [u32; 2] = [0xffff_0000, 0xffff_fff2];
/// The attribute `TCA_KIND`: the kind of a filter.
const KIND: u16 = 1;
