//! Pairs of hosts between which a packet passed that may hide an acknowledgement, such as a fragment.
//!
//! After such a packet the last ACK of each flow between these hosts is in doubt; other flows are not affected.
//! Each doubt begins an epoch. A flow's last ACK is recorded with its epoch, and is in doubt if a doubt about
//! its hosts came later.
//!
//! A pair of hosts is a 64-bit seeded hash, like a flow. Bounded: the hosts of the last [`KEPT`] doubts are
//! kept; older doubts concern all hosts.

use alloc::boxed::Box;

use rxo_wire::FlowHash;

/// The number of doubts that are kept.
pub(super) const KEPT: u16 = 4_096;

#[derive(Debug)]
pub(super) struct Doubts {
    /// The last `KEPT` doubts, by their epoch.
    ring: Box<[Doubt]>,
    /// The epoch of the last doubt in each bucket; 0 before the first.
    last: Box<[u16]>,
}

#[derive(Clone, Copy, Debug)]
struct Doubt {
    pair: FlowHash,
    /// The epoch of the doubt before it in its bucket.
    before: u16,
}

impl Doubts {
    pub(super) fn new() -> Self {
        let none = Doubt { pair: FlowHash(0), before: 0 };
        Self {
            ring: core::iter::repeat_n(none, KEPT.into()).collect(),
            last: core::iter::repeat_n(0, KEPT.into()).collect(),
        }
    }

    /// Notes that `epoch`, one more than any before, begins with a doubt about this pair of hosts.
    pub(super) fn note(&mut self, pair: FlowHash, epoch: u16) {
        let last = &mut self.last[bucket(pair)];
        let mut before = core::mem::replace(last, epoch);
        // An earlier doubt about this pair adds nothing: a stream of fragments leaves one doubt.
        if is_kept(before, epoch) && self.ring[index(before)].pair == pair {
            before = self.ring[index(before)].before;
        }
        self.ring[index(epoch)] = Doubt { pair, before };
    }

    /// Whether there was a doubt about this pair of hosts after the epoch `since`; `epoch` is the current one.
    pub(super) fn is_any(&self, pair: FlowHash, since: u16, epoch: u16) -> bool {
        if !is_kept(since + 1, epoch) {
            return true;
        }
        let mut at = self.last[bucket(pair)];
        while at > since {
            let doubt = self.ring[index(at)];
            if doubt.pair == pair {
                return true;
            }
            at = doubt.before;
        }
        false
    }

    /// Forgets all doubts. Epochs begin anew.
    pub(super) fn clear(&mut self) {
        self.last.fill(0);
    }
}

/// Whether the ring still has the doubt of the epoch `noted`.
const fn is_kept(noted: u16, epoch: u16) -> bool {
    noted > epoch.saturating_sub(KEPT)
}

const fn index(epoch: u16) -> usize {
    (epoch % KEPT) as usize
}

const fn bucket(pair: FlowHash) -> usize {
    (pair.0 % KEPT as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: FlowHash = FlowHash(7);
    /// In the same bucket.
    const NEIGHBOUR: FlowHash = FlowHash(7 + KEPT as u64);

    #[test]
    fn a_doubt_concerns_its_own_hosts_and_what_was_before_it() {
        let mut doubts = Doubts::new();
        doubts.note(SOME, 3);
        doubts.note(NEIGHBOUR, 4);
        assert!(doubts.is_any(SOME, 2, 4) && !doubts.is_any(SOME, 3, 4));
        assert!(doubts.is_any(NEIGHBOUR, 3, 4) && !doubts.is_any(NEIGHBOUR, 4, 4));
        assert!(!doubts.is_any(FlowHash(9), 2, 4));
    }

    #[test]
    fn of_many_fragments_between_two_hosts_one_is_kept() {
        let mut doubts = Doubts::new();
        doubts.note(NEIGHBOUR, 2);
        (3..1_000).for_each(|epoch| doubts.note(SOME, epoch));
        assert_eq!(doubts.ring[index(999)].before, 2);
        assert!(doubts.is_any(NEIGHBOUR, 1, 999) && !doubts.is_any(NEIGHBOUR, 2, 999));
    }

    #[test]
    fn what_is_too_long_ago_to_be_known_is_in_doubt() {
        let mut doubts = Doubts::new();
        (2..=KEPT + 2).for_each(|epoch| doubts.note(NEIGHBOUR, epoch));
        assert!(!doubts.is_any(SOME, 2, KEPT + 2), "all doubts since are kept");
        assert!(doubts.is_any(SOME, 1, KEPT + 2), "the first is not");
    }
}
