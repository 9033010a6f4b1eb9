//! The records whose packets the engines hold, by number.

use rxo_capture::Record;

/// A record whose packet is held by an engine.
#[derive(Debug)]
pub(super) struct Carried {
    pub(super) record: Record,
    /// The length of the link header, in bytes, that was not passed to the engine.
    pub(super) link_bytes: usize,
    pub(super) place: u64,
}

/// The records whose packets are held by the engines, by the numbers of these packets.
#[derive(Debug, Default)]
pub(super) struct Held {
    slots: Vec<Option<Carried>>,
    free: Vec<u32>,
}

impl Held {
    /// Stores the record `carried` and returns its number. At most [`MOST_RECORDS`](super::MOST_RECORDS)
    /// records are stored at a time.
    pub(super) fn keep(&mut self, carried: Carried) -> u32 {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = Some(carried);
            return number;
        }
        self.slots.push(Some(carried));
        self.slots.len() as u32 - 1
    }

    /// Removes and returns the record with this number, whose packet was delivered; `None` if the record was already
    /// returned.
    pub(super) fn take(&mut self, number: u32) -> Option<Carried> {
        let carried = self.slots.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(carried)
    }
}
