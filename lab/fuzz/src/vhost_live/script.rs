//! The bytes of an input, as numbers. At the end of the bytes there are no more steps, and other numbers are 0.

use super::memory::{BYTES, Place};

pub(super) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub(super) const fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(super) fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.next().unwrap_or_default()
    }

    pub(super) fn flag(&mut self) -> bool {
        self.byte() % 2 == 1
    }

    pub(super) fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// At most 255 bytes, as many as the next byte says.
    pub(super) fn bytes(&mut self) -> &'a [u8] {
        let count = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }

    /// Where the second thread writes, and what.
    pub(super) fn places(&mut self) -> Vec<Place> {
        let count = self.byte() % 16;
        let place = |_| Place { at: u64::from(self.word()) % (BYTES - 2), value: self.word() };
        (0..count).map(place).collect()
    }
}
