//! How far deliveries run from the order of arrival, on the coalescing side.
//!
//! Whoever expands has to keep everything that arrived after the oldest record that is not
//! delivered. So that there is a limit to that, there is one here.

use std::collections::VecDeque;

use super::{MOST_BYTES, MOST_RECORDS};

/// The records from the oldest that is not delivered to the last that arrived.
#[derive(Debug, Default)]
pub(super) struct Span {
    /// The place of the first of `records`.
    first: u64,
    /// Bytes of each, and whether it was delivered.
    records: VecDeque<(usize, bool)>,
    bytes: usize,
}

impl Span {
    /// A record of so many bytes arrives; says its place.
    pub(super) fn enter(&mut self, bytes: usize) -> u64 {
        self.records.push_back((bytes, false));
        self.bytes += bytes;
        self.first + self.records.len() as u64 - 1
    }

    /// The record at `place` is delivered.
    pub(super) fn leave(&mut self, place: u64) {
        let index = place.saturating_sub(self.first) as usize;
        if let Some((_, is_delivered)) = self.records.get_mut(index) {
            *is_delivered = true;
        }
        while let Some((bytes, true)) = self.records.front().copied() {
            self.records.pop_front();
            self.bytes -= bytes;
            self.first += 1;
        }
    }

    /// The place of the oldest record that is not delivered; of the next to arrive if all are.
    pub(super) const fn oldest(&self) -> u64 {
        self.first
    }

    /// Whether everything held is to be delivered now.
    pub(super) fn is_full(&self) -> bool {
        self.records.len() >= MOST_RECORDS || self.bytes >= MOST_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reaches_from_the_oldest_to_the_last() {
        let mut span = Span::default();
        let places: Vec<u64> = (0..10).map(|_| span.enter(MOST_BYTES / 10)).collect();
        assert_eq!(places, (0..10).collect::<Vec<_>>());
        (1..10).for_each(|place| span.leave(place));
        span.enter(MOST_BYTES / 5);
        assert!(span.is_full(), "the first is still not delivered");
        span.leave(0);
        assert!(!span.is_full());
        assert_eq!(span.enter(0), 11);
    }

    #[test]
    fn records_count_as_well_as_bytes() {
        let mut span = Span::default();
        (1..MOST_RECORDS).for_each(|_| _ = span.enter(1));
        assert!(!span.is_full());
        span.enter(1);
        assert!(span.is_full());
    }
}
