//! Sockets that are bound to an interface. Such a socket stores the interface's index, and receives only
//! packets that arrive on that interface.

use std::net::{IpAddr, SocketAddr};

use rxo_netlink::{Netlink, Request, u32_at};

/// Lists the TCP and UDP sockets that are bound to the interface with this index. Empty if the kernel cannot
/// list sockets.
pub(crate) fn bound_to(index: u32) -> Vec<String> {
    let Ok(netlink) = Netlink::sockets() else { return Vec::new() };
    let kinds = [("TCP", libc::IPPROTO_TCP), ("UDP", libc::IPPROTO_UDP)];
    let families = [libc::AF_INET, libc::AF_INET6];
    let all = kinds.into_iter().flat_map(|kind| families.map(|family| (kind, family)));
    let found = all.flat_map(|((name, protocol), family)| {
        let mut header = [0; REQUEST_BYTES];
        (header[0], header[1]) = (family as u8, protocol as u8);
        header[4..8].copy_from_slice(&ALL_STATES.to_ne_bytes());
        let shown = netlink.dump(&Request::new(BY_FAMILY, &header)).unwrap_or_default();
        let bound = shown.iter().filter_map(|one| bound(one, index)).collect::<Vec<_>>();
        bound.into_iter().map(move |address| format!("{name} {address}"))
    });
    found.collect()
}

/// Returns the local address of a listed socket; `None` if it is bound to another interface or to none.
fn bound(shown: &[u8], index: u32) -> Option<SocketAddr> {
    let is_it = u32_at(shown, INTERFACE_AT)? == index;
    let port = u16::from_be_bytes(*shown.get(PORT_AT..)?.first_chunk()?);
    let address: [u8; 16] = *shown.get(ADDRESS_AT..)?.first_chunk()?;
    let address = if libc::c_int::from(shown[0]) == libc::AF_INET {
        IpAddr::from(*address.first_chunk::<4>()?)
    } else {
        IpAddr::from(address)
    };
    is_it.then(|| SocketAddr::new(address, port))
}

// linux/sock_diag.h and linux/inet_diag.h.
const BY_FAMILY: u16 = 20;
const REQUEST_BYTES: usize = 56;
const ALL_STATES: u32 = u32::MAX;
const PORT_AT: usize = 4;
const ADDRESS_AT: usize = 8;
const INTERFACE_AT: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_read_and_a_short_one_is_none() {
        let mut shown = vec![0; 72];
        shown[0] = libc::AF_INET as u8;
        shown[PORT_AT..6].copy_from_slice(&68_u16.to_be_bytes());
        shown[ADDRESS_AT..12].copy_from_slice(&[10, 0, 0, 2]);
        shown[INTERFACE_AT..44].copy_from_slice(&3_u32.to_ne_bytes());
        assert_eq!(bound(&shown, 3), Some(SocketAddr::from(([10, 0, 0, 2], 68))));
        assert_eq!(bound(&shown, 4), None);
        for bytes in 0..44 {
            assert_eq!(bound(&shown[..bytes], 3), None, "{bytes}");
        }
    }
}
