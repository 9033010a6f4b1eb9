//! What a source says about its frames, and what a sink accepts.

use rxo_frame::LinkKind;

/// What a source says about the frames it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceCapabilities {
    /// What a frame begins with.
    pub link: LinkKind,
    /// The largest IP packet on the wire, in bytes.
    pub mtu: u32,
    /// Whether frames come with a checksum status other than `Unknown`.
    pub says_checksum: bool,
    /// Whether some frames are GSO frames.
    pub gives_gso: bool,
}

/// What a sink accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkCapabilities {
    /// What a packet must begin with.
    pub link: LinkKind,
    /// The largest IP packet without segmentation, in bytes.
    pub mtu: u32,
    /// The largest GSO frame as an IP packet, in bytes. 0 if the sink cannot segment: then do not
    /// send it aggregates.
    pub gso_bytes: u32,
    /// Whether it segments GSO frames of UDP ([`GsoKind::Udp`](rxo_frame::GsoKind::Udp)), or delivers them
    /// where none need be segmented. A sink that says so and meets a kernel or a guest that does not sends the
    /// frames instead.
    pub segments_udp: bool,
    /// Whether it segments GSO frames in tunnels over UDP (a [`UdpTunnel`](rxo_frame::UdpTunnel)). A sink of the system
    /// that does not sends the segments instead.
    pub segments_tunnels: bool,
    /// Whether it gathers the pieces of a packet without a copy.
    pub gathers: bool,
    /// Whether it completes partial checksums, or delivers where none need be complete.
    pub completes_checksums: bool,
    /// Whether it expands ACK templates ([`GsoKind::AckTemplate`]). Their checksums must be partial.
    ///
    /// [`GsoKind::AckTemplate`]: rxo_frame::GsoKind::AckTemplate
    pub expands_acks: bool,
}
