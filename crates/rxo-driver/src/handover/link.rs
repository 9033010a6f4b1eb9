//! An interface itself: its index, name and hardware address, and what stands above and below it.

use std::io;

use rxo_device::DeviceError;
use rxo_netlink::{Netlink, Request, attribute, u32_at};

use crate::fault;

/// The state of an interface at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its index, which stays when the interface is renamed.
    pub(crate) index: u32,
    /// Its name at that time.
    pub(crate) name: String,
    /// Its hardware address; empty if it has none.
    pub(crate) mac: Vec<u8>,
    /// Whether it is loopback.
    pub(crate) is_loopback: bool,
    /// Whether it is up.
    pub(crate) is_up: bool,
    /// Whether it has carrier: a peer at the other end of the wire.
    pub(crate) has_carrier: bool,
    /// The largest packet that it takes or gives, in bytes; more than 65,536 is BIG TCP.
    pub(crate) most_bytes: u32,
    /// The bridge, bond or VRF that it is part of.
    pub(crate) master: Option<String>,
    /// Interfaces on top of it, such as VLANs.
    pub(crate) uppers: Vec<String>,
}

/// `ifinfomsg`: family, type, index, flags, and which flags to change.
const HEADER_BYTES: usize = 16;

/// `gso_max_size`, `gro_max_size`, and both for IPv4, of linux/if_link.h.
const MAX_SIZES: [u16; 4] = [41, 58, 63, 64];

impl Link {
    /// Reads the interface with this index; `None` if there is none.
    ///
    /// # Errors
    /// If the system refuses to list interfaces.
    pub(crate) fn read(index: u32) -> Result<Option<Self>, DeviceError> {
        let links = Netlink::route()
            .and_then(|netlink| netlink.dump(&Request::new(libc::RTM_GETLINK, &[0; HEADER_BYTES])));
        let links = links.map_err(|error| fault::system("cannot list interfaces", error))?;
        let links: Vec<Shown<'_>> = links.iter().filter_map(|link| Shown::read(link)).collect();
        let Some(own) = links.iter().find(|link| link.index == index) else { return Ok(None) };
        let is_master = |link: &&Shown<'_>| Some(link.index) == own.number(libc::IFLA_MASTER);
        let uppers = links.iter().filter(|link| link.is_made_of(index));
        Ok(Some(Self {
            index,
            name: own.name(),
            mac: own.attribute(libc::IFLA_ADDRESS).unwrap_or_default().to_vec(),
            is_loopback: own.flags & libc::IFF_LOOPBACK as u32 != 0,
            is_up: own.flags & libc::IFF_UP as u32 != 0,
            has_carrier: own.flags & libc::IFF_LOWER_UP as u32 != 0,
            most_bytes: own.most_bytes(),
            master: links.iter().find(is_master).map(Shown::name),
            uppers: uppers.map(Shown::name).collect(),
        }))
    }

    /// Sets the hardware address.
    ///
    /// # Errors
    /// If the interface refuses it, or privilege is missing.
    pub(crate) fn set_mac(&self, mac: &[u8]) -> Result<(), DeviceError> {
        let request = self.request(libc::RTM_NEWLINK, 0, 0).attribute(libc::IFLA_ADDRESS, mac);
        self.change(&request, "set the hardware address of")
    }

    /// Takes the interface up or down.
    ///
    /// # Errors
    /// If privilege is missing.
    pub(crate) fn set_up(&self, up: bool) -> Result<(), DeviceError> {
        let flags = if up { libc::IFF_UP as u32 } else { 0 };
        let verb = if up { "bring up" } else { "take down" };
        self.change(&self.request(libc::RTM_NEWLINK, flags, libc::IFF_UP), verb)
    }

    /// Deletes the interface. An interface that is gone already is no error.
    ///
    /// # Errors
    /// If privilege is missing, or interfaces of its kind cannot be deleted.
    pub(crate) fn remove(&self) -> Result<(), DeviceError> {
        match Netlink::route()
            .and_then(|netlink| netlink.change(&self.request(libc::RTM_DELLINK, 0, 0)))
        {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            other => other.map_err(|error| self.cannot("remove", error)),
        }
    }

    /// A request for this interface. Of its flags, those in `mask` become those of `flags`.
    fn request(&self, kind: u16, flags: u32, mask: libc::c_int) -> Request {
        let mut header = [0; HEADER_BYTES];
        header[4..8].copy_from_slice(&self.index.to_ne_bytes());
        header[8..12].copy_from_slice(&flags.to_ne_bytes());
        header[12..16].copy_from_slice(&(mask as u32).to_ne_bytes());
        Request::new(kind, &header)
    }

    fn change(&self, request: &Request, verb: &str) -> Result<(), DeviceError> {
        let changed = Netlink::route().and_then(|netlink| netlink.change(request));
        changed.map_err(|error| self.cannot(verb, error))
    }

    fn cannot(&self, verb: &str, error: io::Error) -> DeviceError {
        fault::system(format!("cannot {verb} interface {}", self.name), error)
    }
}

/// One interface of a list.
struct Shown<'a> {
    index: u32,
    flags: u32,
    rest: &'a [u8],
}

impl<'a> Shown<'a> {
    fn read(shown: &'a [u8]) -> Option<Self> {
        let (header, rest) = shown.split_at_checked(HEADER_BYTES)?;
        Some(Self { index: u32_at(header, 4)?, flags: u32_at(header, 8)?, rest })
    }

    fn attribute(&self, kind: u16) -> Option<&'a [u8]> {
        attribute(self.rest, kind)
    }

    fn number(&self, kind: u16) -> Option<u32> {
        u32_at(self.attribute(kind)?, 0)
    }

    fn most_bytes(&self) -> u32 {
        let sizes = MAX_SIZES.into_iter().filter_map(|kind| self.number(kind));
        sizes.max().unwrap_or(0)
    }

    fn name(&self) -> String {
        let name = self.attribute(libc::IFLA_IFNAME).unwrap_or_default();
        String::from_utf8_lossy(name).trim_end_matches('\0').to_owned()
    }

    /// Whether it is on top of the interface with this index, such as a VLAN. A veth names its peer by the
    /// same attribute, but does not count.
    fn is_made_of(&self, index: u32) -> bool {
        let info = self.attribute(libc::IFLA_LINKINFO).unwrap_or_default();
        let is_veth = attribute(info, libc::IFLA_INFO_KIND) == Some(b"veth\0".as_slice())
            || attribute(info, libc::IFLA_INFO_KIND) == Some(b"veth".as_slice());
        let is_elsewhere = self.attribute(libc::IFLA_LINK_NETNSID).is_some();
        !is_veth && !is_elsewhere && self.number(libc::IFLA_LINK) == Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_seen_as_what_it_is() {
        let link = Link::read(1).unwrap().unwrap();
        assert_eq!((link.name.as_str(), link.is_loopback), ("lo", true));
        assert_eq!((link.master, link.uppers), (None, vec![]));
        assert_eq!(Link::read(u32::MAX >> 1).unwrap(), None);
    }
}
