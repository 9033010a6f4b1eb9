//! How often the same number was acknowledged together with SACK blocks.
//!
//! A peer with SACK finds losses by what has arrived, not by the number of duplicates (RFC 6675, section 4; RFC
//! 8985), and each duplicate costs it more than it costs here. So a duplicate may be left out if the next one has all
//! of its blocks. Separate from `acks.rs` because it outlives what is owed.

use rxo_wire::SeqNumber;

/// Counts duplicates of one number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repeats {
    ack: SeqNumber,
    times: u8,
}

impl Repeats {
    /// Counts an acknowledgement of `ack`. Returns whether the one before may be left out: a peer that counts has
    /// already got as many as begin a fast retransmission (RFC 5681, section 3.2).
    pub(super) fn count(&mut self, ack: SeqNumber) -> bool {
        let times = if ack == self.ack { self.times } else { 0 };
        *self = Self { ack, times: times.saturating_add(1) };
        times > MOST_COUNTED
    }
}

/// DupThresh of RFC 6675.
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
