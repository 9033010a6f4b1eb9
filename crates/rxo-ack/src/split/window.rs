//! Computes the window of an ACK that is inserted before an ACK of the host. Pure functions.
//!
//! The right edge of the window (ACK number plus scaled window) is a promise to the peer. An ACK inserted
//! between two ACKs of the host must not have a right edge above that of the second ACK, and should not have
//! one below that of the first ACK.

use rxo_wire::SeqNumber;
use rxo_wire::tcp::{OptionKind, Options};

/// The window scaling that one side offered in its SYN (RFC 7323, section 2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Offer {
    /// No SYN of this side was seen, so its offer is unknown.
    #[default]
    Unknown,
    /// The SYN of this side has no window scale option, so its windows are not shifted.
    No,
    /// This side shifts its windows by this number of bits, if the other side offers scaling too.
    Shift(u8),
}

/// The maximum valid window shift in bits; larger shifts count as this value (RFC 7323, section 2.3).
const MAX_SHIFT: u8 = 14;

impl Offer {
    /// Reads the offer of window scaling from the TCP options of a SYN.
    pub(super) fn read(options: &[u8]) -> Self {
        let mut offer = Self::No;
        for option in Options::new(options).flatten() {
            if let (OptionKind::WindowScale, [shift]) = (option.kind, option.data) {
                offer = Self::Shift((*shift).min(MAX_SHIFT));
            }
        }
        offer
    }

    /// Returns the number of bits by which the sender of this offer shifts its windows, given the offer of the
    /// other side. `None` if the shift is unknown, because a SYN was not seen.
    pub(super) const fn shift(self, other: Self) -> Option<u8> {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Some(0),
            (Self::Shift(shift), Self::Shift(_)) => Some(shift),
            _ => None,
        }
    }
}

/// The right window edges of two consecutive ACKs of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edges {
    pub(super) before: SeqNumber,
    pub(super) after: SeqNumber,
    pub(super) shift: u8,
}

/// Returns the right edge of an ACK's window: the ACK number plus the scaled window.
pub(super) fn edge(ack: SeqNumber, window: u16, shift: u8) -> SeqNumber {
    ack + (u32::from(window) << shift)
}

/// Returns the window of an ACK with number `ack` that is inserted before an ACK with `window`.
///
/// The result is nearly always `window` itself. The right edge is then lower than that of the host's ACK,
/// because the inserted ACK acknowledges less. If the host's window shrinks, the result is larger than
/// `window`, so that the right edge does not move back. If the window scale is too coarse to express this edge,
/// the resulting edge is too low by less than one step of the scale, which every sender must tolerate (RFC
/// 7323, section 2.4).
pub(super) fn window(ack: SeqNumber, window: u16, edges: Option<Edges>) -> u16 {
    let Some(Edges { before, after, shift }) = edges else { return window };
    if edge(ack, window, shift).is_at_or_after(before) {
        return window;
    }
    let step = 1_i64 << shift;
    let room = |to: SeqNumber| i64::from(to - ack).max(0);
    let keeps = (room(before) + step - 1) / step;
    let most = room(after) / step;
    keeps.min(most).clamp(0, i64::from(u16::MAX)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(before: u32, after: u32, shift: u8) -> Option<Edges> {
        Some(Edges { before: SeqNumber(before), after: SeqNumber(after), shift })
    }

    #[test]
    fn a_constant_or_growing_window_is_taken_as_it_is() {
        assert_eq!(window(SeqNumber(500), 100, None), 100);
        assert_eq!(window(SeqNumber(500), 100, edges(12_800, 13_800, 7)), 100);
        assert_eq!(window(SeqNumber(500), 120, edges(12_800, 16_360, 7)), 120);
    }

    #[test]
    fn a_shrinking_window_keeps_its_right_edge() {
        // From ACK 0 with window 1,000 to ACK 1,000 with window 0: the application read nothing.
        assert_eq!(window(SeqNumber(400), 0, edges(1_000, 1_000, 0)), 600);
        // The edge advances by 64 at shift 6: from 6,400 to 6,464.
        assert_eq!(window(SeqNumber(640), 0, edges(6_400, 6_464, 6)), 90);
        assert_eq!(window(SeqNumber(630), 0, edges(6_400, 6_464, 6)), 91, "6,454 is between");
    }

    #[test]
    fn an_edge_too_fine_for_the_scale_is_missed_by_less_than_a_step() {
        assert_eq!(window(SeqNumber(100), 0, edges(1_000, 1_000, 7)), 7, "996, not 1,124");
        assert_eq!(window(SeqNumber(900), 0, edges(1_000, 800, 0)), 0, "the host itself took back");
    }

    #[test]
    fn the_scale_needs_both_sides() {
        use Offer::{No, Shift, Unknown};
        assert_eq!(Shift(7).shift(Shift(9)), Some(7));
        assert_eq!(Shift(7).shift(No), Some(0));
        assert_eq!(No.shift(Unknown), Some(0));
        assert_eq!(Shift(7).shift(Unknown), None);
        assert_eq!(Offer::read(&[2, 4, 5, 180, 1, 3, 3, 200]), Shift(14));
        assert_eq!(Offer::read(&[2, 4, 5, 180]), No);
    }
}
