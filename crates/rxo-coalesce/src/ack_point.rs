//! The acknowledgement number and the window of a pure ACK, and the comparison of two pure ACKs.

use rxo_wire::SeqNumber;

use rxo_wire::layout::number;

use crate::shape::Shape;

/// The acknowledgement number and the window of a pure ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckPoint {
    /// The acknowledgement number (SEG.ACK).
    pub(crate) ack: SeqNumber,
    /// The window (SEG.WND), unscaled.
    pub(crate) window: u16,
}

/// The change from one pure ACK to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckChange {
    /// The next ACK has a higher ACK number, or the same ACK number with another window.
    More,
    /// The next ACK has the same ACK number and window.
    Same,
    /// The next ACK has a lower ACK number.
    Less,
}

impl AckPoint {
    /// Reads the ACK from headers whose IP header has `IP` bytes.
    #[inline]
    pub(crate) fn of<const IP: usize, const HEADERS: usize>(headers: &[u8; HEADERS]) -> Self {
        let word = number(headers, IP + 8);
        Self { ack: SeqNumber((word >> 32) as u32), window: word as u16 }
    }

    /// Reads the ACK of a packet of IP version `S`; `None` if the packet is truncated.
    #[inline]
    pub(crate) fn read<S: Shape>(packet: &[u8]) -> Option<Self> {
        let tcp: &[u8; 16] = packet.get(S::IP_BYTES..)?.first_chunk()?;
        Some(Self::of::<0, 16>(tcp))
    }

    /// Returns `true` if this ACK has a higher ACK number than `last`.
    #[inline]
    pub(crate) fn advances(self, last: Self) -> bool {
        self.ack != last.ack && !self.ack.is_before(last.ack)
    }

    /// Returns how `next` differs from this ACK.
    #[inline]
    pub(crate) fn compare(self, next: Self) -> AckChange {
        if next.ack.is_before(self.ack) {
            AckChange::Less
        } else if next == self {
            AckChange::Same
        } else {
            AckChange::More
        }
    }
}
