//! Pairs: index of the held flows by their pair of hosts.
//!
//! A fragment, an unreadable packet or a packet with a wrong checksum may belong to any flow between its
//! addresses, so all these flows are flushed before it. This index finds them without examining any other
//! flow.
//!
//! Such packets are rare, so the index is updated only when it is searched, which keeps the addition of a flow
//! cheap. The frames received since the last update contain the last frame of every new flow, so the update finds
//! every new flow. The entry of a flushed flow stays until a search reaches it, or until another flow gets its
//! flow index. So each frame is examined once and each entry is removed once, however many flows are held. The
//! memory is bounded: one entry per flow index. Does not allocate after construction. To keep searches short, a
//! search skips at most [`MOST_OTHERS`] flows of other hosts in its bucket, and returns any further flows as if
//! they matched. A bucket has more than [`MOST_OTHERS`] such flows only by a rare chance, or if senders know the
//! seed.

use alloc::vec::Vec;

use rxo_wire::FlowHash;

use crate::lists::Lists;
use crate::work;

const MIN_BUCKETS: usize = 256;
/// The maximum number of flows of other hosts that a search skips.
const MOST_OTHERS: usize = 16;

#[derive(Debug)]
pub(crate) struct Pairs {
    /// The flow indices of each bucket; the number of buckets is a power of two.
    buckets: Lists,
    /// The flows that the last search has found: the slot of each flow's last frame and the flow's index; empty between
    /// searches.
    found: Vec<(u32, u16)>,
}

/// The state of an index entry that a search reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexEntry {
    /// The flow at this index was flushed, so its entry is stale.
    Gone,
    /// The flow is between other hosts; its last frame is in this slot.
    Other(u32),
    /// The flow is between the hosts of the search; its last frame is in this slot.
    Meant(u32),
}

impl Pairs {
    /// Creates an index for `indices` flow indices and at most `flows` flows.
    pub(crate) fn new(indices: usize, flows: usize) -> Self {
        let buckets = (flows * 2).next_power_of_two().max(MIN_BUCKETS);
        Self { buckets: Lists::new(buckets, indices), found: Vec::with_capacity(flows) }
    }

    /// Adds `flow`; `pair` is the hash of its hosts.
    pub(crate) fn note(&mut self, flow: u16, pair: FlowHash) {
        self.buckets.put(self.bucket(pair), flow);
    }

    /// Finds the flows between the hosts whose hash is `pair`; `meet` returns the state of a flow index.
    /// [`Pairs::next_found`] then returns the flows, the least recently used first, together with the surplus flows of
    /// a crowded bucket.
    pub(crate) fn search(&mut self, pair: FlowHash, mut meet: impl FnMut(u16) -> IndexEntry) {
        let mut next = self.buckets.first(self.bucket(pair));
        let mut others = 0;
        while let Some(flow) = next {
            work::done(1);
            next = self.buckets.after(flow);
            match meet(flow) {
                IndexEntry::Gone => self.buckets.remove(flow),
                IndexEntry::Other(_) if others < MOST_OTHERS => others += 1,
                IndexEntry::Meant(tail) | IndexEntry::Other(tail) => {
                    self.buckets.remove(flow);
                    self.found.push((tail, flow));
                }
            }
        }
        // Sorted in reverse, because `next_found` pops from the end.
        self.found.sort_unstable_by(|one, other| other.cmp(one));
    }

    /// Returns the index of the next flow that the search has found, and removes the flow from the index of pairs;
    /// `None` after the last.
    pub(crate) fn next_found(&mut self) -> Option<u16> {
        self.found.pop().map(|(_, flow)| flow)
    }

    fn bucket(&self, pair: FlowHash) -> u16 {
        (pair.0 as usize & (self.buckets.count() - 1)) as u16
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// Returns a hash that spreads `pair` over the buckets of the index, as the engine's seeded hash of two
    /// addresses does.
    const fn hash(pair: u64) -> FlowHash {
        FlowHash(pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20)
    }

    fn found(pairs: &mut Pairs) -> Vec<u16> {
        core::iter::from_fn(|| pairs.next_found()).collect()
    }

    #[test]
    fn a_stranger_meets_as_few_of_4096_flows_as_of_64() {
        for flows in [64, 4_096] {
            let mut pairs = Pairs::new(flows, flows);
            (0..flows).for_each(|flow| pairs.note(flow as u16, hash(flow as u64)));
            let mut met = 0;
            for stranger in 10_000..11_000 {
                pairs.search(hash(stranger), |_| {
                    met += 1;
                    IndexEntry::Other(0)
                });
            }
            assert!(met < 1_000, "{flows} flows: {met} met in 1,000 searches");
        }
    }

    #[test]
    fn flows_between_two_hosts_are_found_in_the_order_of_their_last_frames() {
        let mut pairs = Pairs::new(8, 8);
        [3, 5, 1].iter().for_each(|flow| pairs.note(*flow, hash(7)));
        pairs.note(2, hash(8));
        let tails = [0, 90, 0, 30, 0, 60];
        pairs.search(hash(7), |flow| IndexEntry::Meant(tails[usize::from(flow)]));
        assert_eq!(found(&mut pairs), [3, 5, 1]);
        pairs.search(hash(7), |flow| panic!("{flow} was found before"));
        assert_eq!(found(&mut pairs), []);
    }

    #[test]
    fn an_index_is_listed_where_its_last_flow_is_and_leaves_when_that_is_gone() {
        let mut pairs = Pairs::new(4, 4);
        [0, 1, 2].iter().for_each(|flow| pairs.note(*flow, hash(7)));
        pairs.note(1, hash(9));
        let mut met = Vec::new();
        pairs.search(hash(7), |flow| {
            met.push(flow);
            IndexEntry::Gone
        });
        assert_eq!(met, [2, 0]);
        pairs.search(hash(7), |flow| panic!("{flow} is gone"));
        pairs.search(hash(9), |_| IndexEntry::Meant(1));
        assert_eq!(found(&mut pairs), [1]);
    }

    #[test]
    fn others_of_a_full_bucket_are_found_too_so_that_the_next_search_is_short() {
        let mut pairs = Pairs::new(64, 64);
        (0..64).for_each(|flow| pairs.note(flow, hash(7)));
        pairs.search(hash(7), |flow| IndexEntry::Other(u32::from(flow)));
        assert_eq!(found(&mut pairs), (0..64 - MOST_OTHERS as u16).collect::<Vec<_>>());
        let mut met = 0;
        pairs.search(hash(7), |flow| {
            met += 1;
            IndexEntry::Other(u32::from(flow))
        });
        assert_eq!((met, found(&mut pairs)), (MOST_OTHERS, Vec::new()));
    }
}
