//! Invalidations: records of packets that may have carried an ACK number which the engine could not read, such
//! as fragments. Each invalidation concerns a pair of hosts.
//!
//! After such a packet, the recorded last ACK of each flow between these hosts may be outdated; other flows are
//! not affected. Each invalidation begins an epoch. A flow's last ACK is recorded with the current epoch. It
//! may be outdated if an invalidation of the flow's hosts was recorded later.
//!
//! A pair of hosts is represented by a 64-bit seeded hash, like a flow. Memory is bounded: only the last
//! [`KEPT`] invalidations are kept, and an older invalidation counts as an invalidation of all hosts. A search
//! is bounded too: it examines at most [`MOST_IN_BUCKET`] invalidations of a bucket and then reports an
//! invalidation. Only a sender that knows the seed can fill a bucket that far.

use alloc::boxed::Box;

use rxo_wire::FlowHash;

use crate::work;

/// The number of invalidations that are kept, which is also the number of buckets.
pub(super) const KEPT: u16 = 4_096;
/// The maximum number of invalidations in a bucket that a search examines.
const MOST_IN_BUCKET: usize = 8;
/// The epoch number that means "none". No invalidation has this number.
const NEVER: u16 = 0;
pub(super) const FIRST_EPOCH: u16 = 2;
/// The number of epochs after which the numbers repeat. A multiple of [`KEPT`], so that each epoch number always
/// has the same ring index.
const EPOCHS: u16 = 15 * KEPT;

#[derive(Debug)]
pub(super) struct Invalidations {
    /// The last [`KEPT`] invalidations, indexed by their epoch modulo the length of the ring.
    ring: Box<[Invalidation]>,
    /// The epoch of the last invalidation in each bucket; [`NEVER`] before the first. The invalidation of that
    /// epoch may have left the ring already.
    last: Box<[u16]>,
}

#[derive(Clone, Copy, Debug)]
struct Invalidation {
    pair: FlowHash,
    /// The epoch of the preceding invalidation in the same bucket; [`NEVER`] if there is none.
    before: u16,
}

impl Invalidations {
    pub(super) fn new() -> Self {
        let none = Invalidation { pair: FlowHash(0), before: NEVER };
        Self {
            ring: core::iter::repeat_n(none, KEPT.into()).collect(),
            last: core::iter::repeat_n(NEVER, KEPT.into()).collect(),
        }
    }

    /// Records an invalidation of the hosts of `pair`, which begins `epoch`, the successor of the last epoch.
    pub(super) fn note(&mut self, pair: FlowHash, epoch: u16) {
        let last = &mut self.last[bucket(pair)];
        let mut before = core::mem::replace(last, epoch);
        // An earlier invalidation of the same pair is replaced: a stream of fragments occupies one entry.
        if before != NEVER && age(before, epoch) < KEPT && self.ring[index(before)].pair == pair {
            before = self.ring[index(before)].before;
        }
        self.ring[index(epoch)] = Invalidation { pair, before };
    }

    /// Returns `true` if an invalidation of the hosts of `pair` was recorded after the epoch `since`. `epoch`
    /// is the current epoch.
    pub(super) fn contains(&self, pair: FlowHash, since: u16, epoch: u16) -> bool {
        let since = age(since, epoch);
        // Invalidations since then have left the ring.
        if since > KEPT {
            return true;
        }
        let mut at = self.last[bucket(pair)];
        for _ in 0..MOST_IN_BUCKET {
            work::done(1);
            // An overwritten entry may lead into the chain of another bucket, which has no invalidation of this
            // pair.
            if at == NEVER || age(at, epoch) >= since {
                return false;
            }
            let invalidation = self.ring[index(at)];
            if invalidation.pair == pair {
                return true;
            }
            at = invalidation.before;
        }
        // The search limit is reached: report an invalidation rather than search further.
        true
    }
}

/// Returns the epoch after `epoch`; the last one is followed by the first.
pub(super) const fn next(epoch: u16) -> u16 {
    FIRST_EPOCH + (epoch - FIRST_EPOCH + 1) % EPOCHS
}

/// Returns the number of epochs from `noted` to the later `epoch`.
pub(super) const fn age(noted: u16, epoch: u16) -> u16 {
    if noted <= epoch { epoch - noted } else { EPOCHS - (noted - epoch) }
}

const fn index(epoch: u16) -> usize {
    ((epoch - FIRST_EPOCH) % KEPT) as usize
}

const fn bucket(pair: FlowHash) -> usize {
    (pair.0 % KEPT as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: FlowHash = FlowHash(7);
    /// A pair of hosts whose hash falls into the same bucket as that of `SOME`.
    const NEIGHBOUR: FlowHash = FlowHash(7 + KEPT as u64);

    #[test]
    fn a_doubt_concerns_its_own_hosts_and_what_was_before_it() {
        let mut invalidations = Invalidations::new();
        invalidations.note(SOME, 3);
        invalidations.note(NEIGHBOUR, 4);
        assert!(invalidations.contains(SOME, 2, 4) && !invalidations.contains(SOME, 3, 4));
        assert!(
            invalidations.contains(NEIGHBOUR, 3, 4) && !invalidations.contains(NEIGHBOUR, 4, 4)
        );
        assert!(!invalidations.contains(FlowHash(9), 2, 4));
    }

    #[test]
    fn of_many_fragments_between_two_hosts_one_is_kept() {
        let mut invalidations = Invalidations::new();
        invalidations.note(NEIGHBOUR, 2);
        (3..1_000).for_each(|epoch| invalidations.note(SOME, epoch));
        assert_eq!(invalidations.ring[index(999)].before, 2);
        assert!(
            invalidations.contains(NEIGHBOUR, 1, 999) && !invalidations.contains(NEIGHBOUR, 2, 999)
        );
    }

    #[test]
    fn a_search_among_chosen_doubts_is_short_and_errs_on_the_side_of_doubt() {
        let mut invalidations = Invalidations::new();
        let chosen = |number: u16| FlowHash(7 + u64::from(KEPT) * u64::from(number));
        (3..1_003).for_each(|epoch| invalidations.note(chosen(epoch), epoch));
        let before = work::steps();
        assert!(
            invalidations.contains(SOME, 2, 1_002),
            "the doubts of its bucket are too many to know"
        );
        assert!(work::steps() - before <= MOST_IN_BUCKET as u64);
        assert!(!invalidations.contains(SOME, 995, 1_002), "all since are known");
    }

    #[test]
    fn what_is_too_long_ago_to_be_known_is_in_doubt() {
        let mut invalidations = Invalidations::new();
        (2..=KEPT + 2).for_each(|epoch| invalidations.note(NEIGHBOUR, epoch));
        assert!(!invalidations.contains(SOME, 2, KEPT + 2), "all doubts since are kept");
        assert!(invalidations.contains(SOME, 1, KEPT + 2), "the first is not");
    }
}
