//! A frame with the metadata from its device.

use core::num::NonZeroU16;

use crate::{ChecksumStatus, Gather, Gso, Instant, Offload};

/// A frame: link-layer bytes, and the metadata from the device at their arrival.
///
/// `B` is the buffer: any type that provides the bytes. The bytes of a frame never change on its way through
/// rxo; a merged header is written elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame<B> {
    /// The bytes of the frame from its first link-layer byte, with padding, without the frame check sequence.
    pub bytes: B,
    /// The arrival time of the frame.
    pub arrived_at: Instant,
    /// The status of the frame's transport checksum.
    pub checksum: ChecksumStatus,
    /// The segmentation parameters of a GSO frame, which a local sender with TCP segmentation offload produces.
    /// `None` for a frame as it crossed the network.
    pub gso: Option<Gso>,
    /// The outer VLAN tag, if the device removed it from the bytes. Other tags stay in the bytes.
    pub vlan: Option<VlanTag>,
}

impl<B: AsRef<[u8]>> Frame<B> {
    /// Creates a frame without metadata: checksum unknown, no GSO, no VLAN tag.
    #[inline]
    pub const fn new(bytes: B, arrived_at: Instant) -> Self {
        Self { bytes, arrived_at, checksum: ChecksumStatus::Unknown, gso: None, vlan: None }
    }

    /// Returns the bytes of the frame.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Returns a copy of this frame that borrows the bytes.
    #[inline]
    pub fn borrowed(&self) -> Frame<&[u8]> {
        self.with_bytes(self.bytes.as_ref())
    }
}

impl<B> Frame<B> {
    /// Returns a frame with the bytes `bytes` and the metadata of this frame. Does not allocate.
    #[inline]
    pub fn with_bytes<C>(&self, bytes: C) -> Frame<C> {
        let Self { bytes: _, arrived_at, checksum, gso, vlan } = *self;
        Frame { bytes, arrived_at, checksum, gso, vlan }
    }

    /// Returns this frame with its bytes converted by `map`. Does not allocate.
    #[inline]
    pub fn map_bytes<C>(self, map: impl FnOnce(B) -> C) -> Frame<C> {
        let Self { bytes, arrived_at, checksum, gso, vlan } = self;
        Frame { bytes: map(bytes), arrived_at, checksum, gso, vlan }
    }
}

impl<'a> Gather<'a> for Frame<&'a [u8]> {
    fn offload(self) -> Offload {
        Offload { checksum: self.checksum, gso: self.gso, header_bytes: 0 }
    }

    fn vlan(self) -> Option<VlanTag> {
        self.vlan
    }

    fn byte_len(self) -> usize {
        self.bytes.len()
    }

    fn for_each_slice(self, mut visit: impl FnMut(&'a [u8])) {
        visit(self.bytes);
    }

    fn frame_count(self) -> usize {
        1
    }

    fn for_each_frame(self, mut visit: impl FnMut(Frame<&'a [u8]>)) {
        visit(self);
    }
}

/// A VLAN tag that a device removed from a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// The tag protocol identifier: 0x8100 (802.1Q) or 0x88a8 (802.1ad).
    pub tpid: NonZeroU16,
    /// The tag control information: priority (3 bits), drop eligible (1 bit), VLAN identifier (12 bits).
    pub tci: u16,
}
