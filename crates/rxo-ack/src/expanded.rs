//! Where a template is expanded to, and the batch that then stands there.

use rxo_frame::{ChecksumStatus, Frame, Instant, VlanTag};

/// Longest frame a template can have, in bytes: Ethernet with two tags (22), IPv6 (40) and TCP with
/// a timestamp (32) are 94.
pub(crate) const SLOT_BYTES: usize = 96;

/// Room for one ACK. The caller lends as many as the template has ACKs; what stood in them does not
/// matter.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct AckSlot {
    pub(crate) bytes: [u8; SLOT_BYTES],
}

impl AckSlot {
    /// An empty slot, to make memory of.
    pub const EMPTY: Self = Self { bytes: [0; SLOT_BYTES] };

    /// What was expanded into it last, as a frame like `like`: one of the same template, such as the
    /// host's own for what a [`crate::Splitter`] puts before that. For who keeps slots by number.
    #[inline]
    #[must_use]
    pub fn frame_like<'m>(&'m self, like: Frame<&[u8]>) -> Frame<&'m [u8]> {
        let Frame { bytes, arrived_at, checksum, vlan, .. } = like;
        Shape { frame_bytes: bytes.len(), arrived_at, checksum, vlan }.frame(self)
    }
}

impl Default for AckSlot {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// The ACKs of a template, as one batch for a sink. A cheap view of the slots.
#[derive(Clone, Copy, Debug)]
pub struct Expanded<'m> {
    pub(crate) slots: &'m [AckSlot],
    pub(crate) shape: Shape,
}

/// What all frames of a batch have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) frame_bytes: usize,
    pub(crate) arrived_at: Instant,
    pub(crate) checksum: ChecksumStatus,
    pub(crate) vlan: Option<VlanTag>,
}

impl<'m> Expanded<'m> {
    /// How many ACKs.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none; a template has always one.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The ACKs in order, as frames: what [`rxo_frame::Gather`] sinks take. Checksum status, VLAN tag
    /// and arrival are those of the template's first.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame<&'m [u8]>> + use<'m> {
        let shape = self.shape;
        self.slots.iter().map(move |slot| shape.frame(slot))
    }
}

impl Shape {
    #[inline]
    pub(crate) fn frame(self, slot: &AckSlot) -> Frame<&[u8]> {
        Frame {
            bytes: slot.bytes.get(..self.frame_bytes).unwrap_or_default(),
            arrived_at: self.arrived_at,
            checksum: self.checksum,
            gso: None,
            vlan: self.vlan,
        }
    }
}
