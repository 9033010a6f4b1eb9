//! Item: one object of the kernel's tables as the bytes of a netlink dump: a fixed header and attributes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rxo_netlink::{Request, attribute, attributes, u32_at};

/// An address, route or neighbour, split into its fixed header and its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) header: Vec<u8>,
    /// The attributes of the object, as bytes of the netlink message.
    pub(super) rest: Vec<u8>,
}

impl Item {
    /// Splits an object of a dump after `header_bytes` bytes; `None` if it is shorter than that.
    pub(super) fn read(shown: &[u8], header_bytes: usize) -> Option<Self> {
        let (header, rest) = shown.split_at_checked(header_bytes)?;
        Some(Self { header: header.to_vec(), rest: rest.to_vec() })
    }

    /// Returns the bytes of the object as in the dump.
    pub(super) fn shown(&self) -> Vec<u8> {
        [self.header.as_slice(), &self.rest].concat()
    }

    pub(super) fn attribute(&self, kind: u16) -> Option<&[u8]> {
        attribute(&self.rest, kind)
    }

    pub(super) fn attributes(&self) -> impl Iterator<Item = (u16, &[u8])> {
        attributes(&self.rest)
    }

    /// Returns the value of a 32-bit attribute; `None` if it is absent or too short.
    pub(super) fn number(&self, kind: u16) -> Option<u32> {
        u32_at(self.attribute(kind)?, 0)
    }

    /// Returns the value of an attribute that is an IP address; `None` if it is absent or has another length.
    pub(super) fn ip(&self, kind: u16) -> Option<IpAddr> {
        ip(self.attribute(kind)?)
    }

    pub(super) fn is_ipv6(&self) -> bool {
        libc::c_int::from(self.header[0]) == libc::AF_INET6
    }

    /// Builds a request of type `kind` with the fixed header of the item, and with the attributes whose types
    /// `named` lists.
    pub(super) fn naming(&self, kind: u16, named: &[u16]) -> Request {
        let kept = self.attributes().filter(|(kind, _)| named.contains(kind));
        kept.fold(Request::new(kind, &self.header), |request, (kind, value)| {
            request.attribute(kind, value)
        })
    }
}

/// Converts 4 or 16 bytes to an IP address; `None` for another length.
pub(super) fn ip(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(v4).into());
    }
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into())
}

/// Returns a copy of `header` with `index` written at offset `at`.
pub(super) fn with_index(header: &[u8], at: usize, index: u32) -> Vec<u8> {
    let mut header = header.to_vec();
    if let Some(place) = header.get_mut(at..at + 4) {
        place.copy_from_slice(&index.to_ne_bytes());
    }
    header
}
