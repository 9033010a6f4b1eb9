//! How something made of several pieces presents itself to a sink.
//!
//! It stands here, below both the receive engine and the devices, so that neither needs to know
//! the other: the engine's deliveries and plain frames are [`Gather`], and sinks take `Gather`.

use core::num::NonZeroU16;

use crate::{ChecksumStatus, Frame, VlanTag};

/// One packet for a sink, in pieces that live for `'a`.
///
/// A value of this trait is a cheap view; what it shows stays in place until `'a` ends, so a sink
/// may hand the pieces to the system and wait.
pub trait Gather<'a>: Copy {
    /// What the sink must say (or do) with the bytes.
    fn offload(self) -> Offload;

    /// The outer VLAN tag that is not in the bytes, if any.
    fn vlan(self) -> Option<VlanTag>;

    /// All pieces together, in bytes.
    fn byte_len(self) -> usize;

    /// Shows the pieces in order. The first holds at least the headers.
    fn for_each_slice(self, visit: impl FnMut(&'a [u8]));

    /// How many frames as they arrived, or segments of a large send, this stands for.
    fn frame_count(self) -> usize;

    /// Shows those frames in order: what a sink falls back to when the system refuses the whole.
    fn for_each_frame(self, visit: impl FnMut(Frame<&'a [u8]>));
}

/// What goes into a `virtio_net_hdr`, or must be done in software where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The checksum's state in the bytes shown.
    pub checksum: ChecksumStatus,
    /// Set when the bytes are several segments in one.
    pub gso: Option<Gso>,
    /// Link, network and transport headers together, in bytes; 0 when nobody has counted.
    pub header_bytes: u16,
}

/// How a packet larger than the link's MTU is to be cut into segments again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gso {
    /// The protocol whose segments they are.
    pub kind: GsoKind,
    /// Whether the segments carry ECN's congestion-window-reduced handling (`GSO_ECN`).
    pub ecn: bool,
    /// Payload bytes of every segment but the last.
    pub size: NonZeroU16,
}

/// The protocols that can be segmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GsoKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP datagrams of equal size, to be fragmented (the old `GSO_UDP`).
    UdpFragment,
    /// UDP datagrams of equal size (`GSO_UDP_L4`).
    Udp,
}
