//! Restores the order of arrival of the original packets when a capture is expanded.

use std::collections::VecDeque;

use rxo_capture::SharedBytes;
use rxo_frame::Instant;

use super::beside::{PacketOptions, Time};
use super::note::BadNote;
use super::{MOST_BYTES, MOST_RECORDS};

/// A record that was restored, with the data that is written for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RestoredRecord {
    pub(super) interface: u32,
    pub(super) at: Instant,
    pub(super) time: Time,
    pub(super) original_bytes: u32,
    /// The bytes of the record, a part of the chunk that all records of its aggregate share.
    pub(super) bytes: SharedBytes,
    pub(super) head: SharedBytes,
    pub(super) options: PacketOptions,
}

impl RestoredRecord {
    /// Returns the memory that the record takes, in bytes, without the chunk of its bytes.
    fn cost(&self) -> usize {
        self.head.as_ref().len() + self.options.len()
    }
}

/// Restored records that wait for records at earlier positions.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The position of the record that is returned next. This record is the first element of `waiting`.
    next: u64,
    waiting: VecDeque<Option<RestoredRecord>>,
    /// The memory of the waiting records, in bytes. The whole length of a shared chunk is counted until the
    /// last of its records is returned.
    bytes: usize,
}

impl Order {
    /// Returns the position of the record that is returned next. If no record waits, returns the position of
    /// the first record that has not arrived.
    pub(super) const fn next_place(&self) -> u64 {
        self.next
    }

    /// Announces that the next records share a chunk of `bytes` bytes.
    pub(super) fn expect_chunk(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Adds the record at position `place`. The chunk of its bytes must have been announced by
    /// [`Order::expect_chunk`].
    pub(super) fn put(&mut self, place: u64, record: RestoredRecord) -> Result<(), BadNote> {
        let index = place.checked_sub(self.next).ok_or(BadNote("stood where another did"))?;
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        // Twice the limit of the coalescing side, because that side checks only from time to time.
        if index >= 2 * MOST_RECORDS || self.bytes > 2 * MOST_BYTES + RECORD_BYTES {
            return Err(BadNote("stood too far from the packets before it"));
        }
        if self.waiting.len() <= index {
            self.waiting.resize(index + 1, None);
        }
        match self.waiting.get_mut(index) {
            Some(free @ None) => {
                self.bytes += record.cost();
                *free = Some(record);
                Ok(())
            }
            _ => Err(BadNote("stood where another did")),
        }
    }

    /// Skips the position that [`next_place`](Self::next_place) returns, because the caller has the record at
    /// this position already.
    pub(super) fn pass(&mut self) -> Result<(), BadNote> {
        match self.waiting.pop_front() {
            Some(Some(_)) => Err(BadNote("stood where another did")),
            Some(None) | None => {
                self.next += 1;
                Ok(())
            }
        }
    }

    /// Returns the record at the next position; `None` if it has not arrived.
    pub(super) fn next(&mut self) -> Option<RestoredRecord> {
        self.waiting.front().and_then(Option::as_ref)?;
        let record = self.waiting.pop_front().flatten()?;
        self.next += 1;
        let (chunk_bytes, is_last) = record.bytes.chunk();
        self.bytes -= record.cost() + if is_last { chunk_bytes } else { 0 };
        Some(record)
    }

    /// Returns the number of records that wait for earlier records.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.iter().flatten().count() as u64
    }

    /// Returns `true` if no record waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The maximum length of a record, in bytes.
const RECORD_BYTES: usize = rxo_capture::limits::RECORD_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    fn given(number: u8) -> RestoredRecord {
        RestoredRecord {
            interface: 0,
            at: Instant::ZERO,
            time: Time::AsClock,
            original_bytes: 1,
            bytes: vec![number].into(),
            head: SharedBytes::default(),
            options: Vec::new(),
        }
    }

    fn put(order: &mut Order, place: u64, number: u8) -> Result<(), BadNote> {
        order.expect_chunk(1);
        order.put(place, given(number))
    }

    fn numbers(order: &mut Order) -> Vec<u8> {
        std::iter::from_fn(|| order.next()).map(|record| record.bytes.as_ref()[0]).collect()
    }

    #[test]
    fn records_come_in_their_old_order() {
        let mut order = Order::default();
        for place in [1, 2, 0, 5, 4] {
            put(&mut order, place, place as u8).unwrap();
        }
        assert_eq!((numbers(&mut order), order.waiting()), (vec![0, 1, 2], 2));
        put(&mut order, 3, 3).unwrap();
        assert_eq!(numbers(&mut order), [3, 4, 5]);
        assert!(order.is_empty() && order.bytes == 0);
    }

    #[test]
    fn a_chunk_counts_until_its_last_record_is_given() {
        let mut order = Order::default();
        let chunk = SharedBytes::from(vec![7; 1_000]);
        order.expect_chunk(1_000);
        for place in [0, 1, 3] {
            order.put(place, RestoredRecord { bytes: chunk.from_offset(999), ..given(0) }).unwrap();
        }
        drop(chunk);
        assert_eq!((numbers(&mut order), order.bytes), (vec![7, 7], 1_000));
        put(&mut order, 2, 5).unwrap();
        assert_eq!((numbers(&mut order), order.bytes), (vec![5, 7], 0));
    }

    #[test]
    fn what_does_not_wait_goes_before_what_waits() {
        let mut order = Order::default();
        order.pass().unwrap();
        put(&mut order, 2, 2).unwrap();
        order.pass().unwrap();
        assert_eq!((numbers(&mut order), order.next_place()), (vec![2], 3));
    }

    #[test]
    fn no_place_is_taken_twice_and_none_is_too_far() {
        let mut order = Order::default();
        put(&mut order, 1, 1).unwrap();
        assert!(put(&mut order, 1, 1).is_err());
        put(&mut order, 0, 0).unwrap();
        numbers(&mut order);
        assert!(put(&mut order, 0, 0).is_err());
        assert!(put(&mut order, u64::MAX, 0).is_err());
        assert!(put(&mut order, 2 + 2 * MOST_RECORDS as u64, 0).is_err());
    }
}
