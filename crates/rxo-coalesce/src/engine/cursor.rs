//! Position in a batch: the current frame, with access to the held frames and the frames after it.

use alloc::vec::Vec;

use rxo_frame::Frame;
use rxo_wire::{ETHERNET_HEADER_BYTES, FlowKey, SeqNumber};

/// The offset of the IP header after an Ethernet header without VLAN tags, in bytes.
pub(super) const ETHERNET: usize = ETHERNET_HEADER_BYTES;
pub(super) const RAW_IP: usize = 0;
/// The value for an offset of the IP header that is not known at compile time.
pub(super) const ANYWHERE: usize = usize::MAX;

/// A frame of a batch and the offset of its IP header. The cursor borrows only the frames, not the store, so
/// the engine can write all other state meanwhile. It has two words, so calls pass it in registers.
pub(super) struct Cursor<'a, B> {
    frames: &'a Vec<Frame<B>>,
    /// The slot of the frame in the lower 32 bits; the offset of its IP header in the upper 32.
    position: u64,
}

impl<B> Clone for Cursor<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Cursor<'_, B> {}

impl<'a, B: AsRef<[u8]>> Cursor<'a, B> {
    /// Creates a cursor at the frame in `slot`, whose headers were not read yet (offset 0).
    #[inline]
    pub(super) const fn new(frames: &'a Vec<Frame<B>>, slot: u32) -> Self {
        Self { frames, position: slot as u64 }
    }

    /// Returns the slot of the current frame.
    #[inline]
    pub(super) const fn slot(self) -> u32 {
        self.position as u32
    }

    /// Returns the offset of the IP header in the current frame, in bytes.
    #[inline]
    pub(super) const fn network(self) -> usize {
        (self.position >> 32) as usize
    }

    /// Returns a cursor at the same frame, with its IP header at `network`.
    #[inline]
    pub(super) const fn with_network(self, network: usize) -> Self {
        Self { position: (network as u64) << 32 | self.slot() as u64, ..self }
    }

    /// Returns a cursor at the frame in `slot`, with the same offset of the IP header.
    #[inline]
    pub(super) const fn moved_to(self, slot: u32) -> Self {
        Self { position: (self.network() as u64) << 32 | slot as u64, ..self }
    }

    /// Returns a cursor at the next frame, with the same offset of the IP header.
    #[inline]
    pub(super) const fn next(self) -> Self {
        self.moved_to(self.slot() + 1)
    }

    /// Returns the current frame; `None` behind the last one.
    #[inline]
    pub(super) fn frame(self) -> Option<&'a Frame<B>> {
        self.frames.get(self.slot() as usize)
    }

    /// Returns the bytes of the current frame from the IP header on; `None` if the frame ends before that offset.
    #[inline]
    pub(super) fn packet(self) -> Option<&'a [u8]> {
        self.frame()?.bytes().get(self.network()..)
    }

    /// Returns the frame `count` slots ahead; `None` behind the last one.
    #[inline]
    pub(super) fn ahead(self, count: u32) -> Option<&'a Frame<B>> {
        self.moved_to(self.slot() + count).frame()
    }

    /// Returns the current frame and all frames behind it.
    #[inline]
    pub(super) fn upcoming(self) -> &'a [Frame<B>] {
        self.frames.get(self.slot() as usize..).unwrap_or_default()
    }

    /// Returns the frame in `slot`, which must be in use. Panics if there is none.
    #[inline]
    pub(super) fn held(self, slot: u32) -> &'a Frame<B> {
        &self.frames[slot as usize]
    }

    /// Returns `true` if the bytes at the offset of SEQ, for a TCP header at `transport`, equal `seq`.
    #[inline]
    pub(super) fn has_seq(self, transport: usize, seq: SeqNumber) -> bool {
        let Some(frame) = self.frame() else { return false };
        let field = frame.bytes().get(transport + 4..transport + 8);
        field
            .and_then(|field| field.first_chunk())
            .is_some_and(|field| *field == seq.0.to_be_bytes())
    }
}

/// Adds to `key` the VLAN tag that the device removed from `frame`, if any.
#[inline]
pub(super) fn flow_key<B>(key: FlowKey, frame: &Frame<B>) -> FlowKey {
    match frame.vlan {
        None => key,
        Some(tag) => key.on_device_vlan(tag.tci & 0x0fff),
    }
}
