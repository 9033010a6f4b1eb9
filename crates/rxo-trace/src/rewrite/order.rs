//! Records in the order in which they once arrived, on the expanding side.

use std::collections::VecDeque;

use rxo_frame::Instant;

use super::digest::PacketOptions;
use super::note::BadNote;
use super::{MOST_BYTES, MOST_RECORDS};

/// A record given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) interface: u32,
    pub(super) at: Instant,
    pub(super) original_bytes: u32,
    pub(super) bytes: Vec<u8>,
    pub(super) options: PacketOptions,
}

/// Records that wait for those before them.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The place of the first of `waiting`: the next to be given.
    next: u64,
    waiting: VecDeque<Option<Given>>,
    bytes: usize,
}

impl Order {
    /// The place of the next record to be given. When all that is there was given, it is the first
    /// that is still to come.
    pub(super) const fn next_place(&self) -> u64 {
        self.next
    }

    /// Takes the record that stood at `place`.
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
                self.bytes += record.bytes.len();
                *free = Some(record);
                Ok(())
            }
            _ => Err(BadNote("stood where another did")),
        }
    }

    /// The next record, when it is there.
    pub(super) fn next(&mut self) -> Option<Given> {
        self.waiting.front().and_then(Option::as_ref)?;
        let record = self.waiting.pop_front().flatten()?;
        self.next += 1;
        self.bytes -= record.bytes.len();
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
            original_bytes: 1,
            bytes: vec![number],
            options: Vec::new(),
        }
    }

    fn numbers(order: &mut Order) -> Vec<u8> {
        std::iter::from_fn(|| order.next()).map(|record| record.bytes[0]).collect()
    }

    #[test]
    fn records_come_in_their_old_order() {
        let mut order = Order::default();
        for place in [1, 2, 0, 5, 4] {
            order.put(place, given(place as u8)).unwrap();
        }
        assert_eq!(numbers(&mut order), [0, 1, 2]);
        order.put(3, given(3)).unwrap();
        assert_eq!(numbers(&mut order), [3, 4, 5]);
        assert!(order.is_empty());
    }

    #[test]
    fn no_place_is_taken_twice_and_none_is_too_far() {
        let mut order = Order::default();
        order.put(1, given(1)).unwrap();
        assert!(order.put(1, given(1)).is_err());
        order.put(0, given(0)).unwrap();
        numbers(&mut order);
        assert!(order.put(0, given(0)).is_err());
        assert!(order.put(u64::MAX, given(0)).is_err());
        assert!(order.put(2 + 2 * MOST_RECORDS as u64, given(0)).is_err());
    }

    #[test]
    fn what_is_there_can_be_had_without_what_is_not() {
        let mut order = Order::default();
        for place in [2, 5] {
            order.put(place, given(place as u8)).unwrap();
        }
        let rest: Vec<u8> =
            std::iter::from_fn(|| order.next_of_rest()).map(|record| record.bytes[0]).collect();
        assert_eq!(rest, [2, 5]);
        assert!(order.is_empty());
    }
}
