//! What a pure ACK says.

use rxo_wire::SeqNumber;

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
    /// What a segment says, from the first byte of its TCP header.
    #[inline(always)]
    pub(crate) fn of(tcp: &[u8]) -> Option<Self> {
        let [a, b, c, d, _, _, e, f] = *tcp.get(8..)?.first_chunk::<8>()?;
        let (ack, window) = (u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([e, f]));
        Some(Self { ack: SeqNumber(ack), window })
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
