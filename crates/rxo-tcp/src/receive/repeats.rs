//! Counts ACKs with SACK blocks that repeat one ACK number.
//!
//! A peer with SACK detects losses by arrivals, not by the number of duplicates (RFC 6675, section 4; RFC
//! 8985), and the peer needs more time to process a duplicate than this side to send it. Therefore a duplicate
//! may be dropped if the next duplicate repeats all of its blocks. Separate from `acks.rs` because the count is
//! kept when the queue is emptied.

use rxo_wire::SeqNumber;

/// Counts duplicates of one ACK number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repeats {
    ack: SeqNumber,
    times: u8,
}

impl Repeats {
    /// Counts an ACK with the ACK number `ack`. Returns `true` if the previous ACK
    /// may be dropped: a peer that counts duplicates already has enough for a fast retransmission (RFC 5681,
    /// section 3.2).
    pub(super) fn count(&mut self, ack: SeqNumber) -> bool {
        let times = if ack == self.ack { self.times } else { 0 };
        *self = Self { ack, times: times.saturating_add(1) };
        times > MOST_COUNTED
    }
}

/// The number of duplicate ACKs that are always sent: DupThresh of RFC 6675.
const MOST_COUNTED: u8 = 3;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_first_three_of_each_number_leave() {
        let mut repeats = Repeats::default();
        let mut of = |number| (0..6).map(|_| repeats.count(SeqNumber(number))).collect::<Vec<_>>();
        assert_eq!(of(7), [false, false, false, false, true, true]);
        assert_eq!(of(8), [false, false, false, false, true, true]);
        assert!((0..1_000).fold(false, |_, _| repeats.count(SeqNumber(8))));
    }
}
