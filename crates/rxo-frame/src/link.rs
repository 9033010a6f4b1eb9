//! The first header of a frame.

/// The header with which a frame begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkKind {
    /// An Ethernet header (TAP, packet sockets, network cards).
    #[default]
    Ethernet,
    /// An IPv4 or IPv6 header (TUN, most VPNs).
    RawIp,
}
