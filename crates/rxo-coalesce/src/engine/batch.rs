//! What is at hand while frames are taken.

use rxo_frame::Frame;
use rxo_wire::SeqNumber;

/// All frames of the store, lent for reading while everything else is written. Nothing but that, so
/// that calls pass it in registers.
pub(super) struct Batch<'a, B> {
    frames: &'a [Frame<B>],
}

impl<B> Clone for Batch<'_, B> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Batch<'_, B> {}

impl<'a, B> Batch<'a, B> {
    #[inline(always)]
    pub(super) const fn new(frames: &'a [Frame<B>]) -> Self {
        Self { frames }
    }

    /// The frame in `slot`; `None` after the last.
    #[inline(always)]
    pub(super) fn get(self, slot: u32) -> Option<&'a Frame<B>> {
        self.frames.get(slot as usize)
    }

    /// The frame in a slot that is known to be in use.
    #[inline(always)]
    pub(super) fn frame(self, slot: u32) -> &'a Frame<B> {
        &self.frames[slot as usize]
    }

    /// Whether there is a frame in `slot` whose TCP header, if it begins at `transport`, has this
    /// sequence number.
    #[inline(always)]
    pub(super) fn has_at(self, slot: u32, transport: usize, seq: SeqNumber) -> bool
    where
        B: AsRef<[u8]>,
    {
        let Some(frame) = self.get(slot) else { return false };
        let field = frame.bytes().get(transport + 4..transport + 8);
        field
            .and_then(|field| field.first_chunk())
            .is_some_and(|field| *field == seq.0.to_be_bytes())
    }

    /// The frames from `slot` on.
    #[inline(always)]
    pub(super) fn upcoming(self, slot: u32) -> &'a [Frame<B>] {
        self.frames.get(slot as usize..).unwrap_or_default()
    }
}
