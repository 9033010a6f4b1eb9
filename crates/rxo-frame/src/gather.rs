//! The interface through which packets in several pieces reach a sink.
//!
//! It is defined below both the receive engine and the devices, so that neither needs to know the
//! other: the engine's deliveries and plain frames implement [`Gather`], and sinks accept `Gather`.

use core::num::NonZeroU16;

use crate::{ChecksumStatus, Frame, VlanTag};

/// One packet for a sink, in pieces with lifetime `'a`.
///
/// A value of this trait is a cheap view. The pieces stay in place until `'a` ends, so a sink may
/// pass them to the system and wait.
pub trait Gather<'a>: Copy {
    /// The checksum and segmentation work that the sink must pass on, or do itself.
    fn offload(self) -> Offload;

    /// The outer VLAN tag, if it is not in the bytes.
    fn vlan(self) -> Option<VlanTag>;

    /// Length of all pieces together, in bytes.
    fn byte_len(self) -> usize;

    /// Calls `visit` for each piece, in order. The first holds at least the headers.
    fn for_each_slice(self, visit: impl FnMut(&'a [u8]));

    /// Number of frames that this packet was made of, or of segments in a large send.
    fn frame_count(self) -> usize;

    /// Calls `visit` for each of those frames, in order. Sinks use it if the system refuses the
    /// whole packet. A packet of one frame is that frame itself; if it is in several pieces, nothing is visited.
    fn for_each_frame(self, visit: impl FnMut(Frame<&'a [u8]>));
}

/// What a sink writes into a `virtio_net_hdr`, or must do in software if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The form of the checksum in the bytes.
    pub checksum: ChecksumStatus,
    /// Set if the bytes are a GSO frame.
    pub gso: Option<Gso>,
    /// Length of link, network and transport headers, in bytes; 0 if unknown.
    pub header_bytes: u16,
}

/// How a GSO frame is segmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gso {
    /// The protocol of the segments.
    pub kind: GsoKind,
    /// Whether CWR is set on the first segment only (`GSO_ECN`).
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
    /// No segments, but pure ACKs of one connection: the first as a frame, with the numbers of the later
    /// ones behind it (`rxo_ack::expand_packed`). Only for sinks that say so.
    AckTemplate,
}
