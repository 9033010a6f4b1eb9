//! Guesses the place that holds the flow of a pure ACK.
//!
//! The guess uses a few bytes of the header. For nearly every ACK after a flow's first in a poll it saves the
//! flow key, its hash and the table. The compare with the ACK held at that place decides whether the guess is
//! right. So nothing here is ever cleared, and a sender that provokes collisions only makes guesses miss.

use alloc::boxed::Box;

use crate::shape::Shape;

const GUESS_BITS: u32 = 8;
/// 2⁶⁴ divided by the golden ratio: its multiples differ in their upper bits.
const STIR: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Debug)]
pub(crate) struct Recent {
    places: Box<[u16; 1 << GUESS_BITS]>,
}

impl Recent {
    pub(crate) fn new() -> Self {
        Self { places: Box::new([0; 1 << GUESS_BITS]) }
    }

    /// The place that may hold the flow of this packet; always some place. `None` if the packet is too short.
    #[inline(always)]
    pub(crate) fn guess<S: Shape>(&self, packet: &[u8]) -> Option<u16> {
        Some(self.places[index::<S>(packet)?])
    }

    /// Records that `place` holds the flow of this packet.
    #[inline(always)]
    pub(crate) fn note<S: Shape>(&mut self, packet: &[u8], place: u16) {
        if let Some(index) = index::<S>(packet) {
            self.places[index] = place;
        }
    }
}

#[inline(always)]
fn index<S: Shape>(packet: &[u8]) -> Option<usize> {
    // The end of the destination address and the ports.
    let bytes = packet.get(S::IP_BYTES - 4..)?.first_chunk::<8>()?;
    let stirred = u64::from_ne_bytes(*bytes).wrapping_mul(STIR);
    Some((stirred >> (64 - GUESS_BITS)) as usize)
}
