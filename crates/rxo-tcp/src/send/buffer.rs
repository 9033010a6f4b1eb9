//! The send buffer: data that the application has written and the peer has not acknowledged.

use alloc::boxed::Box;
use alloc::vec;
use core::fmt;

/// A ring of bytes that begins at SND.UNA. Allocates at construction only.
pub(crate) struct SendBuffer {
    bytes: Box<[u8]>,
    head: usize,
    length: usize,
}

impl SendBuffer {
    pub(crate) fn with_capacity(bytes: u32) -> Self {
        Self { bytes: vec![0; bytes as usize].into_boxed_slice(), head: 0, length: 0 }
    }

    /// The length of the data, in bytes.
    pub(crate) fn len(&self) -> u32 {
        self.length as u32
    }

    /// The free room, in bytes.
    pub(crate) fn room(&self) -> u32 {
        (self.bytes.len() - self.length) as u32
    }

    /// Appends as much of `data` as fits. Returns how many bytes.
    pub(crate) fn write(&mut self, data: &[u8]) -> usize {
        let taken = data.len().min(self.room() as usize);
        let at = self.place(self.length);
        let (first, second) = data[..taken].split_at(taken.min(self.bytes.len() - at));
        self.bytes[at..at + first.len()].copy_from_slice(first);
        self.bytes[..second.len()].copy_from_slice(second);
        self.length += taken;
        taken
    }

    /// Removes the first `bytes`, or all if there are fewer.
    pub(crate) fn advance(&mut self, bytes: u32) {
        let gone = self.length.min(bytes as usize);
        self.head = self.place(gone);
        self.length -= gone;
    }

    /// The bytes from the index `from` up to `to`, as far as there are such; in two pieces if they wrap
    /// around the end of the ring.
    pub(crate) fn slices(&self, from: u32, to: u32) -> [&[u8]; 2] {
        let to = (to as usize).min(self.length);
        let from = (from as usize).min(to);
        let (at, length) = (self.place(from), to - from);
        let first = length.min(self.bytes.len() - at);
        [&self.bytes[at..at + first], &self.bytes[..length - first]]
    }

    fn place(&self, offset: usize) -> usize {
        let at = self.head + offset;
        if at >= self.bytes.len() { at - self.bytes.len() } else { at }
    }
}

impl fmt::Debug for SendBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendBuffer({} bytes from {})", self.length, self.head)
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
        let mut ring = SendBuffer::with_capacity(4);
        assert_eq!(ring.write(b"abcdef"), 4);
        assert_eq!(ring.write(b"x"), 0);
        ring.advance(3);
        assert_eq!(ring.write(b"efg"), 3);
        assert_eq!(ring.slices(0, 4), [&b"d"[..], &b"efg"[..]]);
        assert_eq!(ring.slices(1, 3), [&b"ef"[..], &b""[..]]);
    }

    proptest! {
        /// The naive oracle is a queue of bytes.
        #[test]
        fn it_is_a_queue(operations in prop::collection::vec((0_u32..20, 0_u32..20), 0..60)) {
            let mut ring = SendBuffer::with_capacity(17);
            let mut queue = VecDeque::new();
            for (number, (write, advance)) in operations.into_iter().enumerate() {
                let data: Vec<u8> = (0..write).map(|at| (number as u8) ^ at as u8).collect();
                let taken = ring.write(&data);
                prop_assert_eq!(taken, data.len().min(17 - queue.len()));
                queue.extend(&data[..taken]);
                ring.advance(advance);
                queue.drain(..queue.len().min(advance as usize));
                let seen = ring.slices(1, u32::MAX).concat();
                prop_assert_eq!(seen, queue.iter().skip(1).copied().collect::<Vec<u8>>());
            }
        }
    }
}
