//! Parses the kernel's notices about changes of the network.

use rxo_netlink::{Notice, attribute, u32_at};

use super::address::Address;
use super::neighbour::Neighbour;
use super::route::Route;

/// A change of the host's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// An interface was created or changed; the fields are its current state, with the MTU in bytes.
    Link { index: u32, name: String, mtu: u32, has_carrier: bool },
    /// The interface with this index was deleted.
    Deleted { index: u32 },
    /// An address, a route or a permanent neighbour of an interface was added, removed or renewed.
    Holding { index: u32 },
    /// Some notices of the kernel were lost, so anything may have changed.
    Unknown,
}

/// The length of `ifinfomsg`, in bytes.
const LINK_HEADER_BYTES: usize = 16;

impl Change {
    /// Parses a notice. `None` if the notice is invalid, or about objects that a run does not follow.
    pub(crate) fn read(notice: &Notice) -> Option<Self> {
        let Notice { kind, object } = notice;
        match *kind {
            libc::RTM_NEWLINK => Self::link(object),
            libc::RTM_DELLINK => Self::deleted(object),
            libc::RTM_NEWADDR | libc::RTM_DELADDR => {
                Some(Self::Holding { index: Address::read(object)?.index()? })
            }
            libc::RTM_NEWROUTE | libc::RTM_DELROUTE => {
                let route = Route::read(object).filter(Route::moves)?;
                Some(Self::Holding { index: route.interface()? })
            }
            libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => {
                Some(Self::Holding { index: Neighbour::read(object)?.set_on()? })
            }
            _ => None,
        }
    }

    fn link(object: &[u8]) -> Option<Self> {
        let (header, rest) = object.split_at_checked(LINK_HEADER_BYTES)?;
        // Bridges report their ports in messages of family `AF_BRIDGE`, which contain less.
        if libc::c_int::from(header[0]) != libc::AF_UNSPEC {
            return None;
        }
        let name = String::from_utf8_lossy(attribute(rest, libc::IFLA_IFNAME)?);
        Some(Self::Link {
            index: u32_at(header, 4)?,
            name: name.trim_end_matches('\0').to_owned(),
            mtu: u32_at(attribute(rest, libc::IFLA_MTU)?, 0)?,
            has_carrier: u32_at(header, 8)? & libc::IFF_LOWER_UP as u32 != 0,
        })
    }

    fn deleted(object: &[u8]) -> Option<Self> {
        let is_bridges = libc::c_int::from(*object.first()?) != libc::AF_UNSPEC;
        (!is_bridges).then_some(Self::Deleted { index: u32_at(object, 4)? })
    }
}

#[cfg(test)]
mod tests {
    use rxo_netlink::nested;

    use super::*;

    #[test]
    fn links_are_read_and_bridges_ports_are_not() {
        let attributes =
            nested(&[(libc::IFLA_IFNAME, b"eth1\0"), (libc::IFLA_MTU, &1400_u32.to_ne_bytes())]);
        let header = |family: u8| {
            let flags = libc::IFF_LOWER_UP as u32;
            [&[family, 0, 0, 0][..], &7_u32.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 4]].concat()
        };
        let notice =
            |kind, family| Notice { kind, object: [header(family), attributes.clone()].concat() };
        let name = "eth1".to_owned();
        let link = Change::Link { index: 7, name, mtu: 1400, has_carrier: true };
        assert_eq!(Change::read(&notice(libc::RTM_NEWLINK, 0)), Some(link));
        assert_eq!(Change::read(&notice(libc::RTM_DELLINK, 0)), Some(Change::Deleted { index: 7 }));
        for kind in [libc::RTM_NEWLINK, libc::RTM_DELLINK] {
            assert_eq!(Change::read(&notice(kind, libc::AF_BRIDGE as u8)), None);
        }
    }

    #[test]
    fn a_report_that_cannot_be_is_nothing() {
        for kind in
            [libc::RTM_NEWLINK, libc::RTM_NEWADDR, libc::RTM_DELROUTE, libc::RTM_NEWNEIGH, 999]
        {
            for bytes in 0..32 {
                let change = Change::read(&Notice { kind, object: vec![0; bytes] });
                assert!(!matches!(change, Some(Change::Link { .. })), "{kind} {bytes}");
            }
        }
    }
}
