//! Text that the application has written and the stack has copied.

use alloc::vec::Vec;

use crate::reserve::reserve;

/// A ring of bytes. Allocates its memory when it is used.
pub(super) struct Ring {
    /// As much of the ring as was ever written.
    bytes: Vec<u8>,
    size: usize,
    head: usize,
    length: usize,
}

impl Ring {
    pub(super) fn with_capacity(bytes: u32) -> Self {
        let size = bytes as usize;
        Self { bytes: Vec::new(), size, head: 0, length: 0 }
    }

    /// Changes the size to `bytes`, or to the length of the data if that is more.
    pub(super) fn resize(&mut self, bytes: u32) {
        let mut resized = Self::with_capacity(bytes.max(self.len()));
        let mut moved = 0;
        while moved < self.len() {
            moved += resized.write(self.slice(moved, self.len())) as u32;
        }
        *self = resized;
    }

    /// Frees the memory of an empty ring. It is allocated again when it is used.
    pub(super) fn free_unused(&mut self) {
        if self.length == 0 {
            self.bytes = Vec::new();
        }
    }

    /// The length of the data, in bytes.
    pub(super) fn len(&self) -> u32 {
        self.length as u32
    }

    /// The free room, in bytes.
    pub(super) fn room(&self) -> u32 {
        (self.size - self.length) as u32
    }

    /// Appends as much of `data` as fits. Returns how many bytes.
    pub(super) fn write(&mut self, data: &[u8]) -> usize {
        let taken = data.len().min(self.room() as usize);
        let at = self.place(self.length);
        let (first, second) = data[..taken].split_at(taken.min(self.size - at));
        self.copy(at, first);
        self.bytes[..second.len()].copy_from_slice(second);
        self.length += taken;
        taken
    }

    /// Copies `data` to the place `at`, over old bytes or as the first that are written there.
    fn copy(&mut self, at: usize, data: &[u8]) {
        let (over, new) = data.split_at(data.len().min(self.bytes.len() - at));
        self.bytes[at..at + over.len()].copy_from_slice(over);
        reserve(&mut self.bytes, at + data.len(), self.size);
        self.bytes.extend_from_slice(new);
    }

    /// Removes the first `bytes`, or all if there are fewer.
    pub(super) fn advance(&mut self, bytes: u32) {
        let gone = self.length.min(bytes as usize);
        self.length -= gone;
        // An empty ring begins anew, so that little data uses little memory.
        self.head = if self.length == 0 { 0 } else { self.place(gone) };
    }

    /// The bytes from the index `from` up to `to`, which are in the ring, as far as they are in one piece: the
    /// end of the ring may divide them.
    #[inline]
    pub(super) fn slice(&self, from: u32, to: u32) -> &[u8] {
        let (at, length) = (self.place(from as usize), (to - from) as usize);
        &self.bytes[at..(at + length).min(self.size)]
    }

    fn place(&self, offset: usize) -> usize {
        let at = self.head + offset;
        if at >= self.size { at - self.size } else { at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn a_full_ring_takes_nothing_more() {
        let mut ring = Ring::with_capacity(4);
        assert_eq!(ring.write(b"abcdef"), 4);
        assert_eq!(ring.write(b"x"), 0);
        ring.advance(3);
        assert_eq!(ring.write(b"efg"), 3);
        assert_eq!([ring.slice(0, 4), ring.slice(1, 4)], [&b"d"[..], &b"efg"[..]]);
        assert_eq!(ring.slice(1, 3), b"ef");
    }

    /// Little data at a time stays at the start of the ring.
    #[test]
    fn unused_memory_is_not_touched() {
        let mut ring = Ring::with_capacity(1 << 20);
        for _ in 0..1_000 {
            ring.write(b"a request");
            ring.advance(9);
        }
        assert_eq!(ring.bytes.len(), 9);
    }

    proptest! {
        /// The naive oracle is a queue of bytes.
        #[test]
        fn it_is_a_queue(
            operations in prop::collection::vec((0_u32..20, 0_u32..20, 0_u32..120), 0..60),
        ) {
            let mut ring = Ring::with_capacity(17);
            let mut queue = VecDeque::<u8>::new();
            let mut size = 17;
            for (number, (write, advance, resize)) in operations.into_iter().enumerate() {
                if resize < 40 {
                    ring.resize(resize);
                    size = queue.len().max(resize as usize);
                }
                let data: Vec<u8> = (0..write).map(|at| (number as u8) ^ at as u8).collect();
                let taken = ring.write(&data);
                prop_assert_eq!(taken, data.len().min(size - queue.len()));
                queue.extend(&data[..taken]);
                ring.advance(advance);
                queue.drain(..queue.len().min(advance as usize));
                let (mut seen, end) = (Vec::new(), ring.len());
                while seen.len() < end as usize {
                    seen.extend_from_slice(ring.slice(seen.len() as u32, end));
                }
                prop_assert!(queue.iter().eq(&seen));
            }
        }
    }
}
