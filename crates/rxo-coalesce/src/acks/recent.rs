//! Guesses the index at which the flow of a pure ACK is held.
//!
//! The guess uses eight bytes of the header. For nearly every ACK after a flow's first in a poll, the guess saves
//! building the flow key, hashing it and searching the table. The compare with the ACK at the guessed index
//! decides whether the guess is right, so stale entries do no harm and are never cleared. A sender that causes
//! collisions can only make guesses wrong.

use alloc::boxed::Box;

use crate::shape::Shape;

const GUESS_BITS: u32 = 8;
/// 2⁶⁴ divided by the golden ratio: its multiples differ in their upper bits.
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Debug)]
pub(crate) struct Recent {
    flows: Box<[u16; 1 << GUESS_BITS]>,
}

impl Recent {
    pub(crate) fn new() -> Self {
        Self { flows: Box::new([0; 1 << GUESS_BITS]) }
    }

    /// Returns the index that probably holds the flow of this packet; the caller must check it. `None` if the
    /// packet is too short.
    #[inline]
    pub(crate) fn guess<S: Shape>(&self, packet: &[u8]) -> Option<u16> {
        Some(self.flows[index::<S>(packet)?])
    }

    /// Records that this packet belongs to `flow`.
    #[inline]
    pub(crate) fn note<S: Shape>(&mut self, packet: &[u8], flow: u16) {
        if let Some(index) = index::<S>(packet) {
            self.flows[index] = flow;
        }
    }
}

#[inline]
fn index<S: Shape>(packet: &[u8]) -> Option<usize> {
    // Hashes the last four bytes of the destination address and the ports.
    let bytes = packet.get(S::IP_BYTES - 4..)?.first_chunk::<8>()?;
    let mixed = u64::from_ne_bytes(*bytes).wrapping_mul(GOLDEN_RATIO);
    Some((mixed >> (64 - GUESS_BITS)) as usize)
}
