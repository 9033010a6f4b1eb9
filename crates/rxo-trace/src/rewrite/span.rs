//! The span of a coalescer: the records since the oldest undelivered record. It limits the difference between
//! the order of delivery and the order of arrival.
//!
//! When the capture is expanded, all records that arrived after the oldest undelivered record must be kept in
//! memory. The limit of the span bounds that memory.

use std::collections::VecDeque;

use super::{MOST_BYTES, MOST_RECORDS};

/// All records from the oldest undelivered record to the newest record, including delivered records between
/// them.
#[derive(Debug, Default)]
pub(super) struct Span {
    /// The position in the capture of the oldest undelivered record, which is the first element of `records`.
    first: u64,
    /// The length of each record in bytes, and `true` if the record was delivered.
    records: VecDeque<(usize, bool)>,
    bytes: usize,
}

impl Span {
    /// Adds a record of `bytes` bytes, which has just arrived, and returns its position.
    pub(super) fn enter(&mut self, bytes: usize) -> u64 {
        self.records.push_back((bytes, false));
        self.bytes += bytes;
        self.first + self.records.len() as u64 - 1
    }

    /// Marks the record at `place` as delivered.
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

    /// Returns the position of the oldest undelivered record. If all records are delivered, returns the
    /// position of the next record to arrive.
    pub(super) const fn oldest(&self) -> u64 {
        self.first
    }

    /// Returns `true` if all held packets must be delivered now, because the span has reached its limit.
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
