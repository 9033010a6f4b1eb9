//! Packets that did not arrive, or were sent more than once, by where that happened.

use std::iter::Sum;

use serde::Serialize;

/// What was lost on the way to the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Segments that the sender's kernel sent more than once.
    pub retransmissions: u64,
    /// Frames for which rxo's ring had no room.
    pub ring_drops: u64,
    /// Frames that the kernel dropped at the host's end of the wire, before anybody saw them.
    pub wire_drops: u64,
    /// Packets that the host's side did not take from rxo.
    pub sink_drops: u64,
}

impl Losses {
    /// Packets lost between the wire and the host, wherever.
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
