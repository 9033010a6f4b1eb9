//! The first header of a frame.

/// The header with which a frame begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkKind {
    /// Frames begin with an Ethernet header (TAP, packet sockets, network cards).
    #[default]
    Ethernet,
    /// Frames begin with an IPv4 or IPv6 header (TUN, most VPNs).
    RawIp,
}

impl LinkKind {
    /// Parses `bytes`, a frame of this kind of link, with the function `ethernet` or `raw_ip`. The caller passes,
    /// for example, `rxo_wire::parse` and `rxo_wire::parse_ip`.
    #[inline(always)]
    pub fn read<'b, T>(
        self,
        bytes: &'b [u8],
        ethernet: impl FnOnce(&'b [u8]) -> T,
        raw_ip: impl FnOnce(&'b [u8]) -> T,
    ) -> T {
        match self {
            Self::Ethernet => ethernet(bytes),
            Self::RawIp => raw_ip(bytes),
        }
    }
}
