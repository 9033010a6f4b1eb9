//! What a device can do for us, and what it expects of us.

use rxo_frame::LinkKind;

/// What a source says about the frames it gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceCapabilities {
    /// What a frame begins with.
    pub link: LinkKind,
    /// The largest IP packet as on the wire, in bytes.
    pub mtu: u32,
    /// Whether frames come with a checksum status other than `Unknown`.
    pub says_checksum: bool,
    /// Whether a frame may be several segments in one.
    pub gives_gso: bool,
}

/// What a sink accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkCapabilities {
    /// What a packet must begin with.
    pub link: LinkKind,
    /// The largest IP packet without segmentation, in bytes.
    pub mtu: u32,
    /// The largest IP packet with segmentation, in bytes; 0 when it cannot segment, and then
    /// aggregates must not be sent to it.
    pub gso_bytes: u32,
    /// Whether it takes a packet in pieces without copying it.
    pub gathers: bool,
    /// Whether it completes partial checksums (or needs none completed).
    pub completes_checksums: bool,
}
