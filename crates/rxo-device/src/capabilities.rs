//! Properties of the frames that a source provides, and of the packets that a sink accepts.

use rxo_frame::LinkKind;

/// Properties of the frames that a source provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceCapabilities {
    /// The header with which each frame begins.
    pub link: LinkKind,
    /// The maximum length of an IP packet on the network, in bytes.
    pub mtu: u32,
    /// `true` if some of the source's frames are GSO frames.
    pub gives_gso: bool,
}

/// Properties of the packets that a sink accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkCapabilities {
    /// The header with which each packet must begin.
    pub link: LinkKind,
    /// The maximum length of an IP packet that is not a GSO frame, in bytes.
    pub mtu: u32,
    /// The maximum length of a GSO frame as an IP packet, in bytes. 0 if the sink cannot segment; the caller must
    /// then pass no aggregates to it.
    pub gso_bytes: u32,
    /// `true` if the sink segments UDP GSO frames ([`GsoKind::Udp`](rxo_frame::GsoKind::Udp)), or delivers them
    /// to a receiver that needs no segmentation. If the kernel or guest behind such a sink does not support UDP
    /// GSO frames, the sink sends the original frames instead.
    pub segments_udp: bool,
    /// `true` if the sink segments GSO frames in tunnels over UDP (a [`UdpTunnel`](rxo_frame::UdpTunnel)). A
    /// sink of the operating system without this support sends the segments instead.
    pub segments_tunnels: bool,
    /// `true` if the sink completes partial checksums, or delivers to a receiver that accepts partial checksums.
    pub completes_checksums: bool,
    /// `true` if the sink expands ACK templates ([`GsoKind::AckTemplate`]). Their checksums must be partial.
    ///
    /// [`GsoKind::AckTemplate`]: rxo_frame::GsoKind::AckTemplate
    pub expands_acks: bool,
}

impl SinkCapabilities {
    /// Returns the capabilities of a sink that segments TCP and UDP GSO frames of up to 65,535 bytes and completes
    /// checksums. It segments no tunnels, and expands no ACK templates.
    #[must_use]
    pub const fn with_gso(link: LinkKind, mtu: u32) -> Self {
        Self {
            link,
            mtu,
            gso_bytes: 65_535,
            segments_udp: true,
            segments_tunnels: false,
            completes_checksums: true,
            expands_acks: false,
        }
    }
}
