//! Weights: determines the flows of a batch that have more than their share of its bytes.
//!
//! This module is separate from the decision how many frames to drop ([`overload`](super::overload)), and is
//! used only if frames are dropped. No side effects; the random seed prevents senders from choosing flows that
//! share a counter. Contract: a share is max-min fair: flows below it need no more than half of the batch
//! together, and at least one flow is above it. Flows that share a counter count as one.

use std::hash::{BuildHasher, RandomState};

use rxo_frame::{Frame, LinkKind};
use rxo_wire::{FlowHasher, FlowKey, Unparsed, parse, parse_ip};

/// The number of counters: twice the 256 frames of a default batch, so that few flows share one.
const COUNTERS: usize = 512;

/// The number of bytes of each flow in a batch, and the fair share: a flow with more bytes than the share is heavy.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    link: LinkKind,
    hasher: FlowHasher,
    bytes: Box<[u64; COUNTERS]>,
    /// The maximum number of bytes of a flow that does not exceed its share.
    share: u64,
    sorted: Vec<u64>,
}

impl Weights {
    /// Creates counters for frames that begin with the header `link`.
    pub(super) fn new(link: LinkKind) -> Self {
        let hasher = FlowHasher::new(RandomState::new().hash_one(0));
        let (bytes, sorted) = (Box::new([0; COUNTERS]), Vec::with_capacity(COUNTERS));
        Self { link, hasher, bytes, share: 0, sorted }
    }

    /// Counts the bytes of each flow in `batch`, and replaces the counts of the previous batch.
    pub(super) fn record_batch<B: AsRef<[u8]>>(&mut self, batch: &[Frame<B>]) {
        self.bytes.fill(0);
        for frame in batch {
            let counter = self.counter(frame);
            self.bytes[counter] += frame.bytes().len().max(1) as u64;
        }
        self.sorted.clear();
        self.sorted.extend(self.bytes.iter().filter(|bytes| **bytes > 0));
        self.sorted.sort_unstable();
        self.share = share(&self.sorted);
    }

    /// Returns `true` if the flow of `frame`, a frame of the batch, has more than its share.
    pub(super) fn is_heavy<B: AsRef<[u8]>>(&self, frame: &Frame<B>) -> bool {
        self.bytes[self.counter(frame)] > self.share
    }

    /// Returns the index of the counter for the flow of `frame`. All frames that are not IP count as one
    /// flow; fragments count by their addresses.
    fn counter<B: AsRef<[u8]>>(&self, frame: &Frame<B>) -> usize {
        let read = self.link.read(frame.bytes(), parse, parse_ip);
        let key = match read {
            Ok(parsed) => parsed.key,
            Err(Unparsed { addresses, .. }) => addresses.unwrap_or(FlowKey::NONE),
        };
        self.hasher.hash(&key).0 as usize % COUNTERS
    }
}

/// Returns the share, in bytes, at which flows limited to it would together need half of all bytes. `flows`
/// are the bytes of each flow, in ascending order.
fn share(flows: &[u64]) -> u64 {
    let mut left = flows.iter().sum::<u64>() / 2;
    for (n, bytes) in flows.iter().enumerate() {
        let share = left / (flows.len() - n) as u64;
        if *bytes > share {
            return share;
        }
        left -= bytes;
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rxo_frame::Instant;
    use rxo_testkit::seg;

    use super::*;

    #[test]
    fn equal_flows_have_all_more_than_their_share() {
        assert_eq!(share(&[100; 8]), 50);
        assert_eq!(share(&[100]), 50);
        assert_eq!(share(&[]), 0);
    }

    #[test]
    fn small_flows_beside_a_large_one_have_less() {
        assert_eq!(share(&[10, 10, 10, 970]), 470);
        // Two large flows share what the small ones leave of a half.
        assert_eq!(share(&[20, 490, 490]), 240);
    }

    proptest! {
        #[test]
        fn what_is_not_heavy_is_at_most_half(mut flows in prop::collection::vec(1_u64..100_000, 1..64)) {
            flows.sort_unstable();
            let share = share(&flows);
            let light: u64 = flows.iter().filter(|bytes| **bytes <= share).sum();
            prop_assert!(light <= flows.iter().sum::<u64>() / 2);
            prop_assert!(flows.last() > Some(&share), "the largest is heavy");
        }
    }

    #[test]
    fn the_flow_that_has_most_of_a_batch_is_heavy() {
        let mut weights = Weights::new(LinkKind::Ethernet);
        let frame = |flow, len| seg().flow(flow).seq(1).len(len).frame_at(Instant::ZERO);
        for flow in 0..20 {
            let mut batch: Vec<_> = (0..40).map(|_| frame(100, 1_000)).collect();
            batch.insert(7, frame(flow, 100));
            weights.record_batch(&batch);
            let heavy = batch.iter().filter(|frame| weights.is_heavy(frame)).count();
            // One flow in 512 shares the counter of the other.
            assert!(heavy == 40 || (heavy == 41 && weights.share >= 20_000), "{flow}: {heavy}");
        }
    }
}
