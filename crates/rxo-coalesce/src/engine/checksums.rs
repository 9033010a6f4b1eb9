//! Transport checksums: decides which are trusted and verifies the others.

use rxo_frame::{ChecksumStatus, Frame, FrameBuffer};
use rxo_wire::checksum::{self, Sum, Summer};
use rxo_wire::{PROTOCOL_TCP, PROTOCOL_UDP, Parsed, Plain};

use super::Engine;
use crate::held::Held;
use crate::shape::Shape;

/// Parameters to verify the checksum of frames whose length and constant header fields equal those of the last
/// held frame.
#[derive(Clone, Copy)]
pub(super) struct Verification {
    pseudo_header: Sum,
    /// The offset of the first byte of the segment in its frame.
    from: usize,
    to: usize,
}

impl Verification {
    /// Creates the verification for segments like the last one of `held`.
    pub(super) fn of(held: &Held) -> Self {
        Self::of_protocol(held, PROTOCOL_TCP)
    }

    /// Creates the verification for datagrams like the last one of `held`.
    pub(super) fn of_datagrams(held: &Held) -> Self {
        Self::of_protocol(held, PROTOCOL_UDP)
    }

    #[inline]
    fn of_protocol(held: &Held, protocol: u8) -> Self {
        Self {
            pseudo_header: held.pseudo_header(protocol, held.last_payload_bytes),
            from: held.at.transport().into(),
            to: usize::from(held.header_bytes) + held.last_payload_bytes as usize,
        }
    }

    /// Returns `true` if the TCP or UDP checksum of `frame` is right.
    #[inline(always)]
    pub(super) fn holds<B: AsRef<[u8]>>(self, frame: &Frame<B>, summer: Summer) -> bool {
        let segment = frame.bytes().get(self.from..self.to).unwrap_or_default();
        (summer.sum(segment) + self.pseudo_header).is_valid()
    }
}

impl<B: FrameBuffer> Engine<B> {
    /// Returns `true` if the checksum need not be summed. A partial checksum must be that of the packet's own
    /// transport header. To ensure this, a tier that does not compare the frame with a held frame calls
    /// [`is_described_oddly`] first.
    #[inline]
    pub(super) fn is_trusted(&self, frame: &Frame<B>) -> bool {
        self.config.trust_checksums || frame.checksum.is_trusted()
    }

    /// Returns `true` if the checksum of a segment or datagram is trusted or right. Reads the payload unless
    /// the checksum is trusted.
    pub(super) fn is_intact(&self, frame: &Frame<B>, parsed: &Parsed) -> bool {
        self.is_trusted(frame)
            || checksum::verify_transport(parsed, frame.bytes(), self.config.summer)
    }

    /// Returns `true` if the checksum of a plain segment is trusted or right. Returns `false` for a partial
    /// checksum, so that slower tiers handle it. Few plain segments have one, and checking its position would
    /// slow down every segment.
    #[inline(always)]
    pub(super) fn is_plain_and_right<S: Shape>(
        &self,
        frame: &Frame<B>,
        plain: Plain,
        packet: &[u8],
    ) -> bool {
        frame.checksum == ChecksumStatus::Verified
            || !frame.checksum.is_partial()
                && (self.config.trust_checksums || self.is_sum_right::<S>(plain, packet))
    }

    /// Returns `true` if the TCP checksum of a segment without IP options and extension headers is right.
    /// Reads its payload.
    #[inline(always)]
    pub(super) fn is_sum_right<S: Shape>(&self, plain: Plain, packet: &[u8]) -> bool {
        // `plain` is passed by value, so that its fields can stay in registers.
        let end = (plain.header_bytes + plain.payload_bytes) as usize;
        let segment = packet.get(S::IP_BYTES..end).unwrap_or_default();
        let pseudo_header = checksum::pseudo_header(&plain.key, PROTOCOL_TCP, segment.len() as u32);
        (self.config.summer.sum(segment) + pseudo_header).is_valid()
    }
}

/// Returns `true` if the fast tiers cannot handle the metadata of a frame: the frame is a GSO frame, or its
/// partial checksum is not in the field at offset `field` of the transport header at `transport`.
#[inline]
pub(super) const fn is_described_oddly<B>(
    frame: &Frame<B>,
    transport: usize,
    field: usize,
) -> bool {
    frame.gso.is_some() || frame.checksum.is_elsewhere(transport, field as u16)
}
