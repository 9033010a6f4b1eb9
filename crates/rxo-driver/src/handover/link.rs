//! Link: an interface itself, with its index, name and hardware address, and the interfaces above and below
//! it.

use std::io;

use rxo_device::DeviceError;
use rxo_netlink::{Netlink, Request, attribute, attributes, u32_at};

use crate::{Interface, fault};

/// The state of an interface at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The interface's index, which stays when the interface is renamed.
    pub(crate) index: u32,
    /// The interface's name at that instant.
    pub(crate) name: String,
    /// The hardware address; empty if the interface has none.
    pub(crate) mac: Vec<u8>,
    /// `true` if this is a loopback interface.
    pub(crate) is_loopback: bool,
    /// `true` if the interface is up.
    pub(crate) is_up: bool,
    /// `true` if the interface has carrier: it detects a peer at the other end of the link.
    pub(crate) has_carrier: bool,
    /// The largest packet that the interface sends or receives (GSO or GRO), in bytes; more than 65,536 is
    /// BIG TCP.
    pub(crate) most_bytes: u32,
    /// The MTU of the interface, in bytes.
    pub(crate) mtu: u32,
    /// Alternative names, by which `ip` finds the interface too.
    pub(crate) altnames: Vec<String>,
    /// The description (`ifalias`); empty if the interface has none.
    pub(crate) alias: String,
    /// The number of the interface's group, which packet filters may match.
    pub(crate) group: u32,
    /// The bridge, bond or VRF that the interface belongs to; `None` if there is none.
    pub(crate) master: Option<String>,
    /// Interfaces that are built on this interface, such as VLANs.
    pub(crate) uppers: Vec<String>,
    /// Maximum number of queues of the interface: for receiving, and for sending.
    pub(crate) queues: [u32; 2],
}

/// The length of `ifinfomsg` in bytes: family, type, index, flags, and a mask of flags to change.
pub(super) const HEADER_BYTES: usize = 16;

/// The attributes with the largest sizes of GSO and GRO frames: `gso_max_size`, `gro_max_size`, and both for
/// IPv4, of linux/if_link.h.
const MAX_SIZES: [u16; 4] = [41, 58, 63, 64];

/// The attributes `IFLA_NUM_RX_QUEUES` and `IFLA_NUM_TX_QUEUES`: the numbers of queues.
const QUEUES: [u16; 2] = [32, 31];

impl Link {
    /// Reads the interface with this index; `None` if there is none.
    ///
    /// # Errors
    /// If the system refuses to list interfaces.
    pub(crate) fn read(index: u32) -> Result<Option<Self>, DeviceError> {
        let links = Netlink::route()
            .and_then(|netlink| netlink.dump(&Request::new(libc::RTM_GETLINK, &[0; HEADER_BYTES])));
        let links = links.map_err(|error| fault::system("cannot list interfaces", error))?;
        let links: Vec<ListedLink<'_>> =
            links.iter().filter_map(|link| ListedLink::read(link)).collect();
        let Some(own) = links.iter().find(|link| link.index == index) else { return Ok(None) };
        let is_master = |link: &&ListedLink<'_>| Some(link.index) == own.number(libc::IFLA_MASTER);
        let uppers = links.iter().filter(|link| link.is_made_of(index));
        Ok(Some(Self {
            index,
            name: own.name(),
            mac: own.attribute(libc::IFLA_ADDRESS).unwrap_or_default().to_vec(),
            is_loopback: own.flags & libc::IFF_LOOPBACK as u32 != 0,
            is_up: own.flags & libc::IFF_UP as u32 != 0,
            has_carrier: own.flags & libc::IFF_LOWER_UP as u32 != 0,
            most_bytes: own.most_bytes(),
            mtu: own.number(libc::IFLA_MTU).unwrap_or(0),
            altnames: own.altnames(),
            alias: own.text(libc::IFLA_IFALIAS),
            group: own.number(libc::IFLA_GROUP).unwrap_or(0),
            master: links.iter().find(is_master).map(ListedLink::name),
            uppers: uppers.map(ListedLink::name).collect(),
            queues: QUEUES.map(|kind| own.number(kind).unwrap_or(1)),
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

    /// Brings the interface up or takes it down.
    ///
    /// # Errors
    /// If privilege is missing.
    pub(crate) fn set_up(&self, up: bool) -> Result<(), DeviceError> {
        let flags = if up { libc::IFF_UP as u32 } else { 0 };
        let verb = if up { "bring up" } else { "take down" };
        self.change(&self.request(libc::RTM_NEWLINK, flags, libc::IFF_UP), verb)
    }

    /// Renames the interface.
    ///
    /// # Errors
    /// If the name is taken, or the interface is up and the kernel is older than Linux 6.2.
    pub(crate) fn rename(&mut self, name: &str) -> io::Result<()> {
        let request = self.request(libc::RTM_NEWLINK, 0, 0).string(libc::IFLA_IFNAME, name);
        Netlink::route()?.change(&request)?;
        name.clone_into(&mut self.name);
        Ok(())
    }

    /// Checks whether the kernel renames the interface while it is up, by a request that renames it to its
    /// current name. Changes nothing.
    ///
    /// # Errors
    /// Returns the errors of [`rename`](Self::rename), and an error if privilege is missing.
    pub(crate) fn renames(&self) -> io::Result<()> {
        self.clone().rename(&self.name)
    }

    /// Returns `true` if an interface has this name as its main or as an alternative name.
    pub(crate) fn is_name_taken(name: &str) -> bool {
        Interface::find(name).is_ok()
    }

    /// Adds an alternative name to the interface. Refused by kernels before Linux 5.5.
    pub(crate) fn add_altname(&self, name: &str) -> io::Result<()> {
        self.change_altname(NEW_PROPERTY, name)
    }

    /// Removes an alternative name from the interface.
    pub(crate) fn remove_altname(&self, name: &str) -> io::Result<()> {
        self.change_altname(DELETE_PROPERTY, name)
    }

    fn change_altname(&self, kind: u16, name: &str) -> io::Result<()> {
        let name = [name.as_bytes(), &[0]].concat();
        let request = self.request(kind, 0, 0).nest(PROPERTIES, &[(ALTNAME, &name)]);
        // For a delete request the bits of `NLM_F_CREATE` have another meaning.
        let flags = if kind == NEW_PROPERTY { libc::NLM_F_CREATE | libc::NLM_F_EXCL } else { 0 };
        Netlink::route()?.change(&request.flags(flags))
    }

    /// Sets the description and the group of the interface to those of `like`.
    pub(crate) fn set_labels(&self, like: &Self) -> io::Result<()> {
        let request = self
            .request(libc::RTM_NEWLINK, 0, 0)
            .attribute(libc::IFLA_IFALIAS, like.alias.as_bytes())
            .attribute(libc::IFLA_GROUP, &like.group.to_ne_bytes());
        Netlink::route()?.change(&request)
    }

    /// Sets the MTU, in bytes.
    ///
    /// # Errors
    /// If the device refuses that size, or privilege is missing.
    pub(crate) fn set_mtu(&self, mtu: u32) -> Result<(), DeviceError> {
        let request = self.request(libc::RTM_NEWLINK, 0, 0);
        let request = request.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes());
        self.change(&request, &format!("set an MTU of {mtu} on"))
    }

    /// Deletes the interface. An interface that is already gone is not an error.
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

    /// Builds a request for this interface that sets the flags in `mask` to their values in `flags`.
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

/// An interface as a netlink dump lists it.
pub(super) struct ListedLink<'a> {
    index: u32,
    flags: u32,
    rest: &'a [u8],
}

impl<'a> ListedLink<'a> {
    pub(super) fn read(shown: &'a [u8]) -> Option<Self> {
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

    pub(super) fn name(&self) -> String {
        self.text(libc::IFLA_IFNAME)
    }

    fn text(&self, kind: u16) -> String {
        text(self.attribute(kind).unwrap_or_default())
    }

    fn altnames(&self) -> Vec<String> {
        let properties = attributes(self.attribute(PROPERTIES).unwrap_or_default());
        properties.filter(|(kind, _)| *kind == ALTNAME).map(|(_, name)| text(name)).collect()
    }

    /// Returns `true` if this interface is built on the interface with this index, as a VLAN interface is.
    fn is_made_of(&self, index: u32) -> bool {
        self.is_made_of_other(index, None)
    }

    /// Returns `true` if this interface is built on the interface with this index in the network namespace
    /// with the id `namespace` (nsid); `None` means the dump's own namespace. A veth names its peer by the
    /// same attribute, but is not built on it.
    pub(super) fn is_made_of_other(&self, index: u32, namespace: Option<u32>) -> bool {
        let info = self.attribute(libc::IFLA_LINKINFO).unwrap_or_default();
        let is_veth = attribute(info, libc::IFLA_INFO_KIND).map(text).as_deref() == Some("veth");
        let is_there = self.number(libc::IFLA_LINK_NETNSID) == namespace;
        !is_veth && is_there && self.number(libc::IFLA_LINK) == Some(index)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

// linux/if_link.h and linux/rtnetlink.h.
const PROPERTIES: u16 = 52;
const ALTNAME: u16 = 53;
const NEW_PROPERTY: u16 = 108;
const DELETE_PROPERTY: u16 = 109;

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
