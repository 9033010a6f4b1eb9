//! What a frame's first byte is.

/// The layer a frame begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkKind {
    /// An Ethernet header (TAP, packet sockets, network cards).
    #[default]
    Ethernet,
    /// An IPv4 or IPv6 header, nothing before it (TUN, most VPNs).
    RawIp,
}
