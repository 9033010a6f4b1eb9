//! Payload in several pieces, without copying.

use alloc::boxed::Box;
use core::fmt;
use core::ops::Range;
use core::slice;

use crate::Frames;

#[cfg(test)]
mod tests;

/// Payload in pieces, read in order from the front. Each piece is a range of a buffer that the chain owns.
///
/// An endpoint keeps the payload of an aggregate in a chain. The bytes stay in the device's buffers, and a
/// buffer is dropped (and so returned) as soon as its last byte is consumed. The chain allocates slots for
/// pieces when it needs them, up to its limit, and keeps them until [`Chain::free_unused`].
///
/// # Examples
/// ```
/// use rxo_frame::Chain;
///
/// let mut chain = Chain::with_limit(2);
/// chain.push(b"<hello >".to_vec(), 1..7)?;
/// chain.push(b"<world>".to_vec(), 1..6)?;
/// assert_eq!(chain.slices().collect::<Vec<_>>().concat(), b"hello world");
/// chain.advance(6);
/// assert_eq!(chain.slices().next(), Some(&b"world"[..]));
/// # Ok::<(), rxo_frame::ChainFull<Vec<u8>>>(())
/// ```
pub struct Chain<B> {
    /// The ring of slots for pieces. Slots are filled field by field, so that no piece is built elsewhere and copied.
    places: Box<[Place<B>]>,
    /// The maximum number of pieces in the chain.
    limit: usize,
    first: usize,
    pieces: usize,
    bytes: usize,
}

/// A slot of the ring, for one piece. Its range is not empty while the slot has a buffer.
struct Place<B> {
    buffer: Option<B>,
    start: usize,
    length: usize,
}

impl<B: AsRef<[u8]>> Place<B> {
    const EMPTY: Self = Self { buffer: None, start: 0, length: 0 };

    /// Stores a piece in this slot, which must be empty.
    #[inline(always)]
    fn fill(&mut self, buffer: B, range: Range<usize>) {
        (self.start, self.length) = (range.start, range.len());
        debug_assert!(self.buffer.is_none(), "a free place has no buffer");
        // A plain assignment would check for an old buffer to drop, although there is none.
        core::mem::forget(self.buffer.replace(buffer));
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        // A range outside the buffer, or a buffer that shrinks, reads as empty.
        let buffer = self.buffer.as_ref().map_or(&[][..], AsRef::as_ref);
        part(buffer, self.start, self.length).unwrap_or_default()
    }
}

/// Error: the chain has its maximum of pieces. The error contains the buffer that was not appended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ChainFull<B>(pub B);

impl<B: AsRef<[u8]>> Chain<B> {
    /// Creates an empty chain for at most `pieces` pieces. Does not allocate.
    #[must_use]
    pub fn with_limit(pieces: usize) -> Self {
        Self { places: Box::default(), limit: pieces, first: 0, pieces: 0, bytes: 0 }
    }

    /// Frees the slots of an empty chain; does nothing if there are pieces.
    pub fn free_unused(&mut self) {
        if self.pieces == 0 {
            self.places = Box::default();
        }
    }

    /// Appends the bytes of `buffer` in `range`. If the range is empty, the buffer is dropped at
    /// once.
    ///
    /// # Errors
    /// [`ChainFull`] with the buffer if the chain has its maximum of pieces.
    ///
    /// # Panics
    /// If `range` is not inside `buffer`.
    pub fn push(&mut self, buffer: B, range: Range<usize>) -> Result<(), ChainFull<B>> {
        let bytes = buffer.as_ref()[range.clone()].len();
        if bytes == 0 { Ok(()) } else { self.push_known(buffer, range) }
    }

    /// Appends the bytes of `buffer` in `range` like [`Chain::push`], but without checking `range`, which must be
    /// inside `buffer` and not empty. If the range is outside, the piece reads as empty.
    ///
    /// # Errors
    /// [`ChainFull`] with the buffer if the chain has its maximum of pieces.
    #[inline]
    pub fn push_known(&mut self, buffer: B, range: Range<usize>) -> Result<(), ChainFull<B>> {
        if self.pieces == self.places.len() && !self.grow() {
            return Err(ChainFull(buffer));
        }
        let index = self.index(self.pieces);
        let Some(place) = self.places.get_mut(index) else { return Err(ChainFull(buffer)) };
        self.bytes += range.len();
        place.fill(buffer, range);
        self.pieces += 1;
        Ok(())
    }

    /// Appends `range` of each of the next `count` frames of `frames`, as far as the chain has space, and returns the
    /// number of pieces appended. The range must be inside each buffer and not empty.
    #[inline]
    pub fn extend_known(
        &mut self,
        frames: &mut impl Frames<B>,
        count: usize,
        range: Range<usize>,
    ) -> usize {
        let count = count.min(self.room_pieces());
        while self.places.len() - self.pieces < count && self.grow() {}
        let (index, free) = (self.index(self.pieces), self.places.len() - self.pieces);
        // Fills the slots up to the end of the ring, then those at its start.
        let (wrapped, next) = self.places.split_at_mut(index);
        let most = count.min(free).min(next.len());
        let mut appended = fill_all(next, frames, most, &range);
        if appended == most && most < count {
            appended += fill_all(wrapped, frames, count - most, &range);
        }
        self.pieces += appended;
        self.bytes += appended * range.len();
        appended
    }

    /// Consumes bytes from the front into `to`, until `to` is full or the chain is empty. Drops each buffer
    /// after its last byte. Returns the number of bytes copied.
    pub fn read(&mut self, to: &mut [u8]) -> usize {
        let mut copied = self.read_pieces(to);
        if !self.is_empty() {
            // Then come the pieces that wrap around the end of the ring, and a part of a piece that does not
            // fit.
            copied += self.read_pieces(&mut to[copied..]);
            copied += self.read_part(&mut to[copied..]);
        }
        copied
    }

    /// Consumes whole pieces into `to`, up to the end of the ring or to a piece that does not fit. Returns the number
    /// of bytes copied. Not inlined, so that the loop has enough registers.
    #[inline(never)]
    fn read_pieces(&mut self, mut to: &mut [u8]) -> usize {
        let (room, end) = (to.len(), self.places.len().min(self.first + self.pieces));
        let mut places = self.places[self.first..end].iter_mut();
        let all = places.len();
        // `lost` counts bytes of pieces that read as empty (see `Place::bytes`), `kept` the pieces that stay.
        let (mut lost, mut kept) = (0, 0);
        while let Some(place) = places.next() {
            // Taken out before it is read, so that the buffer is loaded once.
            let Some(buffer) = place.buffer.take() else {
                kept = 1 + places.len();
                break;
            };
            let text = part(buffer.as_ref(), place.start, place.length).unwrap_or_else(|| {
                lost += nothing_of(place.length);
                &[]
            });
            let Some(here) = to.split_off_mut(..text.len()) else {
                place.buffer = Some(buffer);
                kept = 1 + places.len();
                break;
            };
            here.copy_from_slice(text);
        }
        let pieces = all - kept;
        let copied = room - to.len();
        self.bytes -= copied + lost;
        self.drop_front(pieces);
        copied
    }

    /// Consumes a part of the first piece into `to`, which is shorter than the piece. Returns the number of
    /// bytes copied.
    fn read_part(&mut self, to: &mut [u8]) -> usize {
        let Some(first) = self.front() else { return 0 };
        let bytes = to.len().min(first.bytes().len());
        to[..bytes].copy_from_slice(&first.bytes()[..bytes]);
        first.start += bytes;
        first.length -= bytes;
        self.bytes -= bytes;
        bytes
    }

    /// Returns an iterator over the remaining bytes, one slice for each piece. A slice is empty only if its
    /// buffer shrank.
    pub fn slices(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let end = self.places.len().min(self.first + self.pieces);
        let (here, wrapped) = (&self.places[self.first..end], self.first + self.pieces - end);
        Slices { here: here.iter(), wrapped: self.places[..wrapped].iter() }
    }

    /// Consumes `bytes` bytes from the front, or all if there are fewer. Drops each buffer after its last byte. Returns
    /// the number of bytes consumed. The cost is proportional to the number of buffers dropped.
    pub fn advance(&mut self, bytes: usize) -> usize {
        let consumed = bytes.min(self.bytes);
        let mut left = self.drop_pieces(consumed);
        if left > 0 {
            // Then come the pieces that wrap around the end of the ring, and a part of a piece.
            left = self.drop_pieces(left);
            if let Some(first) = self.front() {
                first.start += left;
                first.length -= left;
                self.bytes -= left;
            }
        }
        consumed
    }

    /// Drops whole pieces of at most `left` bytes, up to the end of the ring. Returns the number of bytes
    /// still to drop.
    fn drop_pieces(&mut self, mut left: usize) -> usize {
        let (most, end) = (left, self.places.len().min(self.first + self.pieces));
        let mut pieces = 0;
        for place in &mut self.places[self.first..end] {
            let Some(after) = left.checked_sub(place.length) else { break };
            left = after;
            place.buffer = None;
            pieces += 1;
        }
        self.bytes -= most - left;
        self.drop_front(pieces);
        left
    }

    /// Moves the remaining bytes of each piece to another buffer. `exchange` receives the old buffer and its
    /// remaining bytes, and returns the new buffer; the old buffer is then dropped. If `exchange` returns
    /// `None`, or a buffer of another length, the piece is unchanged.
    pub fn exchange(&mut self, mut exchange: impl FnMut(&B, &[u8]) -> Option<B>) {
        for place in &mut self.places {
            let length = place.length;
            let new = place.buffer.as_ref().and_then(|old| exchange(old, place.bytes()));
            if let Some(buffer) = new.filter(|new| new.as_ref().len() == length) {
                *place = Place { buffer: Some(buffer), start: 0, length };
            }
        }
    }

    /// Returns the number of bytes that remain in the chain.
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns `true` if no bytes remain in the chain.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the number of pieces that can still be appended to the chain.
    #[must_use]
    pub fn room_pieces(&self) -> usize {
        self.limit - self.pieces
    }

    /// Doubles the number of slots, up to the limit. Returns `false` if the limit was reached before.
    #[cold]
    fn grow(&mut self) -> bool {
        let count = (2 * self.places.len()).max(FIRST_PLACES).min(self.limit);
        let mut places = core::mem::take(&mut self.places).into_vec();
        let more = count - places.len();
        // Rotates the first piece to the first slot, so that the new slots follow the last piece.
        places.rotate_left(self.first);
        places.reserve_exact(more);
        places.resize_with(count, || Place::EMPTY);
        (self.places, self.first) = (places.into(), 0);
        more > 0
    }

    /// Returns the ring index of the piece with this `number`, counted from the front. If `number` is the
    /// number of pieces, returns the index of the first free slot.
    #[inline]
    fn index(&self, number: usize) -> usize {
        let index = self.first + number;
        if index >= self.places.len() { index - self.places.len() } else { index }
    }

    #[inline]
    fn front(&mut self) -> Option<&mut Place<B>> {
        if self.pieces == 0 { None } else { self.places.get_mut(self.first) }
    }

    /// Removes the first `pieces` pieces, whose buffers are already dropped.
    #[inline]
    fn drop_front(&mut self, pieces: usize) {
        self.pieces -= pieces;
        // An empty chain starts again at the first slots, which are in the cache.
        self.first = if self.pieces == 0 { 0 } else { self.index(pieces) };
    }
}

/// Returns `length` bytes of `bytes`, starting at `start`; `None` if there are fewer.
#[inline(always)]
fn part(bytes: &[u8], start: usize, length: usize) -> Option<&[u8]> {
    bytes.get(start..)?.get(..length)
}

/// Returns `length`. Marked as cold, so that the compiler treats the branch for pieces that read as empty as rare.
#[cold]
#[inline(never)]
const fn nothing_of(length: usize) -> usize {
    length
}

/// Iterator over the bytes of pieces, in order: first the pieces up to the end of the ring, then those that wrap around
/// to its start.
struct Slices<'a, B> {
    here: slice::Iter<'a, Place<B>>,
    wrapped: slice::Iter<'a, Place<B>>,
}

impl<'a, B: AsRef<[u8]>> Iterator for Slices<'a, B> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.here.len() == 0 {
            self.here = core::mem::take(&mut self.wrapped);
        }
        self.here.next().map(Place::bytes)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let exact = self.here.len() + self.wrapped.len();
        (exact, Some(exact))
    }

    #[inline]
    fn fold<A, F: FnMut(A, &'a [u8]) -> A>(self, first: A, mut then: F) -> A {
        let here = self.here.fold(first, |last, place| then(last, place.bytes()));
        self.wrapped.fold(here, |last, place| then(last, place.bytes()))
    }
}

impl<B: AsRef<[u8]>> ExactSizeIterator for Slices<'_, B> {}

/// Stores `range` of each of the next `count` frames of `frames` in `places`, which must have at least `count` slots.
/// Stops when there are no more frames. Returns the number of slots filled.
#[inline(always)]
fn fill_all<B: AsRef<[u8]>>(
    places: &mut [Place<B>],
    frames: &mut impl Frames<B>,
    count: usize,
    range: &Range<usize>,
) -> usize {
    let (all, mut places) = (places.len(), places.iter_mut());
    frames.take_buffers(count, |buffer| {
        if let Some(place) = places.next() {
            place.fill(buffer, range.clone());
        }
    });
    all - places.len()
}

impl<B> fmt::Debug for Chain<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({} bytes in {} pieces)", self.bytes, self.pieces)
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

const FIRST_PLACES: usize = 4;
