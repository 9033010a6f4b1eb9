//! The memory slots into which a template is expanded, and the resulting batch of ACKs.

use rxo_frame::Frame;

/// The size of the memory slot for one ACK frame, in bytes. The longest frame of a template has 94 bytes:
/// Ethernet with two tags (22), IPv6 (40), and TCP with a timestamp (32).
pub(crate) const SLOT_BYTES: usize = 96;

/// Memory for one ACK frame. The caller provides one slot per ACK of a template; old contents do not matter.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct AckSlot {
    pub(crate) bytes: [u8; SLOT_BYTES],
}

impl AckSlot {
    /// An empty slot, to initialise an array of slots.
    pub const EMPTY: Self = Self { bytes: [0; SLOT_BYTES] };

    /// Returns the ACK that was last written into this slot, with the metadata of the frame `like`. `like` must
    /// be a frame of the same template, such as the host's own ACK if the template came from a
    /// [`crate::Splitter`]. This function is for callers that store the index of a slot instead of an
    /// [`Expanded`].
    #[inline]
    #[must_use]
    pub fn frame_like<'m>(&'m self, like: Frame<&[u8]>) -> Frame<&'m [u8]> {
        self.frame(Frame { gso: None, ..like.with_bytes(like.bytes.len()) })
    }

    /// Returns the ACK in this slot. `like` contains its metadata, and its length in bytes.
    #[inline]
    pub(crate) fn frame(&self, like: Frame<usize>) -> Frame<&[u8]> {
        like.map_bytes(|bytes| self.bytes.get(..bytes).unwrap_or_default())
    }
}

impl Default for AckSlot {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// The ACKs of an expanded template, as one batch for a sink. This type is a `Copy` view of the slots that
/// contain the ACKs.
#[derive(Clone, Copy, Debug)]
pub struct Expanded<'m> {
    pub(crate) slots: &'m [AckSlot],
    /// The length of each frame of the batch in bytes, and the metadata of all frames.
    pub(crate) like: Frame<usize>,
}

impl<'m> Expanded<'m> {
    /// Returns the number of ACKs in the batch, at least one.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Always returns `false`, because a template has at least one ACK.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns an iterator over the ACKs in order, as frames that [`rxo_frame::Gather`] sinks accept. All
    /// have the checksum status, VLAN tag and arrival time of the template's first frame.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Frame<&'m [u8]>> + use<'m> {
        let like = self.like;
        self.slots.iter().map(move |slot| slot.frame(like))
    }
}
