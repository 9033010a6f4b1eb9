//! What a captured packet begins with.

/// A link-layer header type, numbered as in capture files (tcpdump.org/linktypes.html).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: four bytes of address family in the byte order of the writing machine.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// An IPv4 or IPv6 header, nothing before it.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: four bytes of address family, most significant first.
    pub const LOOP: Self = Self(108);
    /// Linux cooked v1: 16 bytes.
    pub const LINUX_SLL: Self = Self(113);
    /// IPv4 only.
    pub const IPV4: Self = Self(228);
    /// IPv6 only.
    pub const IPV6: Self = Self(229);
    /// Linux cooked v2: 20 bytes.
    pub const LINUX_SLL2: Self = Self(276);
}
