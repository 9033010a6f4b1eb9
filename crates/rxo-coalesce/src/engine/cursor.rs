//! The place in a batch: the frame in hand, those held and those to come.

use alloc::vec::Vec;

use rxo_frame::Frame;
use rxo_wire::{ETHERNET_HEADER_BYTES, FlowKey, SeqNumber};

/// The first byte of the IP header in most frames: behind an Ethernet header, or at once.
pub(super) const ETHERNET: usize = ETHERNET_HEADER_BYTES;
pub(super) const RAW_IP: usize = 0;
/// It begins elsewhere.
pub(super) const ANYWHERE: usize = usize::MAX;

/// A frame of a batch, and where its IP header begins. The frames of the store are lent for reading while everything
/// else is written. Two words, so that calls pass it in registers.
pub(super) struct Cursor<'a, B> {
    frames: &'a Vec<Frame<B>>,
    /// The slot of the frame; above it, 32 bits for the first byte of its IP header.
    position: u64,
}

impl<B> Clone for Cursor<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Cursor<'_, B> {}

impl<'a, B: AsRef<[u8]>> Cursor<'a, B> {
    /// The frame in `slot`, whose headers are not read yet.
    #[inline(always)]
    pub(super) const fn new(frames: &'a Vec<Frame<B>>, slot: u32) -> Self {
        Self { frames, position: slot as u64 }
    }

    /// The slot of the frame.
    #[inline(always)]
    pub(super) const fn slot(self) -> u32 {
        self.position as u32
    }

    /// The first byte of the IP header.
    #[inline(always)]
    pub(super) const fn network(self) -> usize {
        (self.position >> 32) as usize
    }

    /// This frame, with its IP header at `network`.
    #[inline(always)]
    pub(super) const fn with_network(self, network: usize) -> Self {
        Self { position: (network as u64) << 32 | self.slot() as u64, ..self }
    }

    /// The frame in `slot`, whose IP header is taken to begin where it does here.
    #[inline(always)]
    pub(super) const fn moved_to(self, slot: u32) -> Self {
        Self { position: (self.network() as u64) << 32 | slot as u64, ..self }
    }

    /// The frame behind this one.
    #[inline(always)]
    pub(super) const fn next(self) -> Self {
        self.moved_to(self.slot() + 1)
    }

    /// The frame in hand; `None` after the last.
    #[inline(always)]
    pub(super) fn frame(self) -> Option<&'a Frame<B>> {
        self.frames.get(self.slot() as usize)
    }

    /// Its bytes from the IP header on; `None` if it ends before.
    #[inline(always)]
    pub(super) fn packet(self) -> Option<&'a [u8]> {
        self.frame()?.bytes().get(self.network()..)
    }

    /// The frame `count` slots further on.
    #[inline(always)]
    pub(super) fn ahead(self, count: u32) -> Option<&'a Frame<B>> {
        self.moved_to(self.slot() + count).frame()
    }

    /// This frame and those behind it.
    #[inline(always)]
    pub(super) fn upcoming(self) -> &'a [Frame<B>] {
        self.frames.get(self.slot() as usize..).unwrap_or_default()
    }

    /// The frame in a slot that is known to be in use.
    #[inline(always)]
    pub(super) fn held(self, slot: u32) -> &'a Frame<B> {
        &self.frames[slot as usize]
    }

    /// Returns `true` if there is a frame whose TCP header, if it begins at `transport`, has this sequence number.
    #[inline(always)]
    pub(super) fn has_seq(self, transport: usize, seq: SeqNumber) -> bool {
        let Some(frame) = self.frame() else { return false };
        let field = frame.bytes().get(transport + 4..transport + 8);
        field
            .and_then(|field| field.first_chunk())
            .is_some_and(|field| *field == seq.0.to_be_bytes())
    }
}

/// The key of a flow whose frame may have lost a VLAN tag to the device.
#[inline(always)]
pub(super) fn flow_key<B>(key: FlowKey, frame: &Frame<B>) -> FlowKey {
    match frame.vlan {
        None => key,
        Some(tag) => key.on_device_vlan(tag.tci & 0x0fff),
    }
}
