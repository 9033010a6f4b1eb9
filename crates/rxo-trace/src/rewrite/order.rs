//! Records in the order in which they once arrived, on the expanding side.

use std::collections::VecDeque;

use rxo_device::capture::SharedBytes;
use rxo_frame::Instant;

use super::beside::{PacketOptions, Time};
use super::note::BadNote;
use super::{MOST_BYTES, MOST_RECORDS};

/// A record given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) interface: u32,
    pub(super) at: Instant,
    pub(super) time: Time,
    pub(super) original_bytes: u32,
    /// Those of all records of one aggregate share a chunk.
    pub(super) bytes: SharedBytes,
    pub(super) head: SharedBytes,
    pub(super) options: PacketOptions,
}

impl Given {
    /// What it takes to keep it, beside the chunk that its bytes are part of.
    fn cost(&self) -> usize {
        self.head.as_ref().len() + self.options.len()
    }
}

/// Records that wait for those before them.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The place of the first of `waiting`: the next to be given.
    next: u64,
    waiting: VecDeque<Option<Given>>,
    /// What those that wait keep, in bytes: of a chunk that several are part of, all of it until the
    /// last one is given.
    bytes: usize,
}

impl Order {
    /// The place of the next record to be given. When all that is there was given, it is the first
    /// that is still to come.
    pub(super) const fn next_place(&self) -> u64 {
        self.next
    }

    /// The records that come next are parts of a chunk of so many bytes, which nobody else keeps.
    pub(super) fn expect_chunk(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Takes the record that stood at `place`; its chunk was announced.
    pub(super) fn put(&mut self, place: u64, record: Given) -> Result<(), BadNote> {
        let index = place.checked_sub(self.next).ok_or(BadNote("stood where another did"))?;
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        // Twice what the coalescing side allows, for it looks only now and then.
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

    /// The record that stood at [`next_place`](Self::next_place) is given without waiting here.
    pub(super) fn pass(&mut self) -> Result<(), BadNote> {
        match self.waiting.pop_front() {
            Some(Some(_)) => Err(BadNote("stood where another did")),
            Some(None) | None => {
                self.next += 1;
                Ok(())
            }
        }
    }

    /// The next record, when it is there.
    pub(super) fn next(&mut self) -> Option<Given> {
        self.waiting.front().and_then(Option::as_ref)?;
        let record = self.waiting.pop_front().flatten()?;
        self.next += 1;
        let (chunk_bytes, is_last) = record.bytes.chunk();
        self.bytes -= record.cost() + if is_last { chunk_bytes } else { 0 };
        Some(record)
    }

    /// The next record that is there, over those that are not.
    pub(super) fn next_of_rest(&mut self) -> Option<Given> {
        while let Some(None) = self.waiting.front() {
            self.waiting.pop_front();
            self.next += 1;
        }
        self.next()
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The longest record.
const RECORD_BYTES: usize = rxo_device::capture::limits::RECORD_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    fn given(number: u8) -> Given {
        Given {
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
        assert_eq!(numbers(&mut order), [0, 1, 2]);
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
            order.put(place, Given { bytes: chunk.from_offset(999), ..given(0) }).unwrap();
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

    #[test]
    fn what_is_there_can_be_had_without_what_is_not() {
        let mut order = Order::default();
        for place in [2, 5] {
            put(&mut order, place, place as u8).unwrap();
        }
        let rest: Vec<u8> = std::iter::from_fn(|| order.next_of_rest())
            .map(|record| record.bytes.as_ref()[0])
            .collect();
        assert_eq!(rest, [2, 5]);
        assert!(order.is_empty());
    }
}
