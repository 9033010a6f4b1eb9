//! Payload that arrived in pieces.

use alloc::collections::VecDeque;
use core::fmt;
use core::ops::Range;

#[cfg(test)]
mod tests;

/// Payload in pieces, each a range of a buffer it owns, read in order from the front.
///
/// It is what an endpoint keeps of an aggregate: the bytes stay where the device put them, and a
/// buffer is dropped (and so given back) as soon as its last byte is consumed. Room for a fixed
/// number of pieces is allocated at the start, and nothing after.
///
/// # Examples
/// ```
/// use rxo_frame::Chain;
///
/// let mut chain = Chain::with_capacity(2);
/// chain.push(b"<hello >".to_vec(), 1..7)?;
/// chain.push(b"<world>".to_vec(), 1..6)?;
/// assert_eq!(chain.slices().collect::<Vec<_>>().concat(), b"hello world");
/// chain.advance(6);
/// assert_eq!(chain.slices().next(), Some(&b"world"[..]));
/// # Ok::<(), rxo_frame::ChainFull<Vec<u8>>>(())
/// ```
pub struct Chain<B> {
    /// None is empty.
    pieces: VecDeque<Piece<B>>,
    capacity: usize,
    bytes: usize,
}

struct Piece<B> {
    buffer: B,
    range: Range<usize>,
}

impl<B: AsRef<[u8]>> Piece<B> {
    fn bytes(&self) -> &[u8] {
        // `push` has seen that the range is inside; a buffer that shrinks since shows nothing.
        self.buffer.as_ref().get(self.range.clone()).unwrap_or_default()
    }
}

/// A chain that has no room for another piece; here is the buffer back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ChainFull<B>(pub B);

impl<B: AsRef<[u8]>> Chain<B> {
    /// An empty chain with room for `pieces` pieces. The only place that allocates.
    #[must_use]
    pub fn with_capacity(pieces: usize) -> Self {
        Self { pieces: VecDeque::with_capacity(pieces), capacity: pieces, bytes: 0 }
    }

    /// Appends the bytes of `buffer` in `range`. An empty range takes no room: the buffer is
    /// dropped at once.
    ///
    /// # Errors
    /// [`ChainFull`] with the buffer when all pieces are in use.
    ///
    /// # Panics
    /// When `range` is not inside `buffer`.
    pub fn push(&mut self, buffer: B, range: Range<usize>) -> Result<(), ChainFull<B>> {
        let bytes = buffer.as_ref()[range.clone()].len();
        if bytes == 0 {
            return Ok(());
        }
        if self.pieces.len() == self.capacity {
            return Err(ChainFull(buffer));
        }
        self.pieces.push_back(Piece { buffer, range });
        self.bytes += bytes;
        Ok(())
    }

    /// The bytes that are left, piece by piece; no slice is empty.
    pub fn slices(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.pieces.iter().map(Piece::bytes)
    }

    /// Consumes `bytes` from the front, or all there are when there are fewer, and drops the
    /// buffers that are used up. Returns how many were consumed. Costs the pieces dropped.
    pub fn advance(&mut self, bytes: usize) -> usize {
        let consumed = bytes.min(self.bytes);
        self.bytes -= consumed;
        let mut left = consumed;
        while left > 0
            && let Some(first) = self.pieces.front_mut()
        {
            let used = left.min(first.range.len());
            first.range.start += used;
            left -= used;
            if first.range.is_empty() {
                self.pieces.pop_front();
            }
        }
        consumed
    }

    /// Bytes that are left.
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// How many more pieces fit.
    #[must_use]
    pub fn room_pieces(&self) -> usize {
        self.capacity - self.pieces.len()
    }
}

impl<B> fmt::Debug for Chain<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({} bytes in {} pieces)", self.bytes, self.pieces.len())
    }
}

impl<B> fmt::Debug for ChainFull<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChainFull")
    }
}

impl<B> fmt::Display for ChainFull<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the payload chain has no room for another piece; consume some of it first")
    }
}

impl<B> core::error::Error for ChainFull<B> {}
