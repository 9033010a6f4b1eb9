//! Packets in one block of memory, like the buffers of a device.

use super::{Workload, generate};

/// Distance between two packets, an odd number of cache lines. With a power of two, the headers of
/// all packets would compete for a few sets of the first-level cache.
const SLOT_BYTES: usize = 35 * LINE_BYTES;
const LINE_BYTES: usize = 64;

/// A workload in one arena. Every packet starts at its own cache line.
#[derive(Clone, Debug)]
pub struct Traffic {
    arena: Vec<u8>,
    /// Distance from the arena's first byte to the first slot, in bytes.
    first: usize,
    /// Length of each packet, in bytes.
    lengths: Vec<u32>,
}

impl Traffic {
    /// Makes `packets` packets of `kind`.
    ///
    /// # Panics
    /// If a packet is longer than a slot (2240 bytes).
    #[must_use]
    pub fn new(kind: Workload, packets: usize, seed: u64) -> Self {
        let mut arena = vec![0; packets * SLOT_BYTES + LINE_BYTES];
        let first = arena.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES);
        let mut lengths = Vec::with_capacity(packets);
        generate(kind, packets, seed, |packet| {
            assert!(packet.len() <= SLOT_BYTES, "{} bytes do not fit a slot", packet.len());
            let at = first + lengths.len() * SLOT_BYTES;
            arena[at..at + packet.len()].copy_from_slice(&packet);
            lengths.push(packet.len() as u32);
        });
        Self { arena, first, lengths }
    }

    /// Returns the number of packets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Returns `true` if there are no packets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns packet `index`.
    ///
    /// # Panics
    /// If there is no such packet.
    #[must_use]
    pub fn packet(&self, index: usize) -> &[u8] {
        let at = self.first + index * SLOT_BYTES;
        &self.arena[at..at + self.lengths[index] as usize]
    }

    /// Returns all packets in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.packet(index))
    }
}
