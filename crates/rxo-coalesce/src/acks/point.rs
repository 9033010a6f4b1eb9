//! What a pure ACK says.

use rxo_wire::SeqNumber;

use crate::expected::{Shape, number};

/// How far the peer acknowledges, and how much more it would take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckPoint {
    /// SEG.ACK.
    pub(crate) ack: SeqNumber,
    /// SEG.WND, unscaled.
    pub(crate) window: u16,
}

/// What the next pure ACK says beyond the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// It acknowledges more, or changes the window.
    More,
    /// It says the same again.
    Same,
    /// It acknowledges less.
    Less,
}

impl AckPoint {
    /// What a packet says whose headers begin with `IP` bytes of the IP header.
    #[inline(always)]
    pub(crate) fn of<const IP: usize, const HEADERS: usize>(headers: &[u8; HEADERS]) -> Self {
        let word = number(headers, IP + 8);
        Self { ack: SeqNumber((word >> 32) as u32), window: word as u16 }
    }

    /// The same for a packet of IP version `S`; `None` when it is cut short.
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

    /// What `next` says after this.
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
