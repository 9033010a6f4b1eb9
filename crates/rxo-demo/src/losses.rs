//! Counts lost and retransmitted packets, by the point of loss.

use std::iter::Sum;

use serde::Serialize;

/// Numbers of packets lost and retransmitted on the way to the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Number of segments that the sender's kernel retransmitted.
    pub retransmissions: u64,
    /// Number of frames that were dropped because rxo's receive ring was full.
    pub ring_drops: u64,
    /// Number of frames that the kernel dropped at the host's end of the wire, before rxo or the stack received them.
    pub wire_drops: u64,
    /// Number of packets that the host's side did not accept from rxo.
    pub sink_drops: u64,
}

impl Losses {
    /// Returns the number of packets lost between the wire and the host, at any point.
    pub const fn lost(&self) -> u64 {
        self.ring_drops + self.wire_drops + self.sink_drops
    }
}

impl Sum for Losses {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            retransmissions: sum.retransmissions + one.retransmissions,
            ring_drops: sum.ring_drops + one.ring_drops,
            wire_drops: sum.wire_drops + one.wire_drops,
            sink_drops: sum.sink_drops + one.sink_drops,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const SOME: Losses =
        Losses { retransmissions: 1, ring_drops: 1, wire_drops: 10, sink_drops: 100 };

    #[test]
    fn losses_of_all_rounds_are_added_and_what_was_sent_again_is_not_lost() {
        let sum: Losses = [SOME; 3].into_iter().sum();
        assert_eq!((sum.retransmissions, sum.lost()), (3, 333));
        assert_eq!((sum.ring_drops, sum.wire_drops, sum.sink_drops), (3, 30, 300));
    }
}
