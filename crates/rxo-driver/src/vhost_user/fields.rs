//! Fields: integers one after the other, in the byte order of this machine.

use super::Wrong;

/// Reads the payload of a message from front to back.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    pub(super) fn u32(&mut self) -> Result<u32, Wrong> {
        self.take().map(u32::from_ne_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Wrong> {
        self.take().map(u64::from_ne_bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Wrong> {
        let (field, rest) = self.rest.split_first_chunk().ok_or(Wrong::Size)?;
        self.rest = rest;
        Ok(*field)
    }

    /// Checks that the whole payload was read.
    pub(super) const fn end(&self) -> Result<(), Wrong> {
        if self.rest.is_empty() { Ok(()) } else { Err(Wrong::Size) }
    }
}
