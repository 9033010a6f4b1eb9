//! The contents of a pure ACK.

use rxo_wire::SeqNumber;

use rxo_wire::layout::number;

use crate::shape::Shape;

/// The acknowledgement number and the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckPoint {
    /// SEG.ACK.
    pub(crate) ack: SeqNumber,
    /// SEG.WND, unscaled.
    pub(crate) window: u16,
}

/// How a pure ACK differs from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// It acknowledges more, or changes the window.
    More,
    /// It repeats the one before.
    Same,
    /// It acknowledges less.
    Less,
}

impl AckPoint {
    /// Reads the ACK of a packet whose IP header has `IP` bytes.
    #[inline(always)]
    pub(crate) fn of<const IP: usize, const HEADERS: usize>(headers: &[u8; HEADERS]) -> Self {
        let word = number(headers, IP + 8);
        Self { ack: SeqNumber((word >> 32) as u32), window: word as u16 }
    }

    /// Reads the ACK of a packet of IP version `S`; `None` if the packet is truncated.
    #[inline(always)]
    pub(crate) fn read<S: Shape>(packet: &[u8]) -> Option<Self> {
        let tcp: &[u8; 16] = packet.get(S::IP_BYTES..)?.first_chunk()?;
        Some(Self::of::<0, 16>(tcp))
    }

    /// Whether this acknowledges more than `last`.
    #[inline(always)]
    pub(crate) fn advances(self, last: Self) -> bool {
        self.ack != last.ack && !self.ack.is_before(last.ack)
    }

    /// How `next` differs from this ACK.
    #[inline(always)]
    pub(crate) fn news(self, next: Self) -> News {
        if next.ack.is_before(self.ack) {
            News::Less
        } else if next == self {
            News::Same
        } else {
            News::More
        }
    }
}
