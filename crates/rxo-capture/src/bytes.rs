//! Byte ranges that share one reference-counted chunk of memory.

use core::fmt;
use std::rc::Rc;

use rxo_frame::FrameBuffer;

/// A part of a shared chunk of memory. Cloning increments a count and copies nothing. The chunk is
/// freed (or reused) when its last part is dropped.
#[derive(Clone, Default)]
pub struct SharedBytes {
    /// The chunk of memory that contains these bytes; `None` if there are no bytes, so that empty
    /// values allocate nothing.
    chunk: Option<Rc<Vec<u8>>>,
    start: u32,
    len: u32,
}

impl SharedBytes {
    /// Creates shared bytes: the part of `chunk` in `range`, which is cut at the end of the chunk.
    #[must_use]
    #[inline]
    pub fn new(chunk: &Rc<Vec<u8>>, range: core::ops::Range<usize>) -> Self {
        let end = range.end.min(chunk.len());
        let start = range.start.min(end);
        Self { chunk: Some(Rc::clone(chunk)), start: start as u32, len: (end - start) as u32 }
    }

    /// Returns the length of the underlying chunk in bytes, and `true` if these bytes are its only part.
    /// Callers that keep many parts need both values to compute the memory in use.
    #[must_use]
    pub fn chunk(&self) -> (usize, bool) {
        self.chunk.as_ref().map_or((0, true), |chunk| (chunk.len(), Rc::strong_count(chunk) == 1))
    }

    /// Returns a copy of the bytes in a new chunk, so that the shared chunk can be freed. Allocates.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self::from(self.as_ref().to_vec())
    }

    /// Returns the part of these bytes that starts at offset `at`; empty if there are at most `at` bytes.
    /// Shares the chunk.
    #[must_use]
    pub fn from_offset(&self, at: usize) -> Self {
        let skipped = u32::try_from(at).unwrap_or(u32::MAX).min(self.len);
        Self { chunk: self.chunk.clone(), start: self.start + skipped, len: self.len - skipped }
    }
}

impl AsRef<[u8]> for SharedBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        let start = self.start as usize;
        let chunk = self.chunk.as_deref().map(Vec::as_slice).unwrap_or_default();
        chunk.get(start..start + self.len as usize).unwrap_or_default()
    }
}

impl FrameBuffer for SharedBytes {}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for SharedBytes {}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.is_empty() {
            return Self::default();
        }
        let len = bytes.len();
        Self::new(&Rc::new(bytes), 0..len)
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", self.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_their_chunk_and_never_reach_beyond_it() {
        let chunk = Rc::new((0..10).collect::<Vec<u8>>());
        let part = SharedBytes::new(&chunk, 2..6);
        assert_eq!(part.as_ref(), [2, 3, 4, 5]);
        assert_eq!(part.from_offset(3).as_ref(), [5]);
        assert!(part.from_offset(5).as_ref().is_empty());
        assert_eq!(SharedBytes::new(&chunk, 8..99).as_ref(), [8, 9]);
        assert!(SharedBytes::new(&chunk, 98..99).as_ref().is_empty());
        assert_eq!(Rc::strong_count(&chunk), 2, "only `part` is left");
        let own = part.detached();
        drop(part);
        assert_eq!((own.as_ref(), Rc::strong_count(&chunk)), (&[2, 3, 4, 5][..], 1));
    }

    #[test]
    fn no_bytes_need_no_chunk() {
        assert!(SharedBytes::default().as_ref().is_empty());
        assert!(SharedBytes::default().from_offset(1).detached().as_ref().is_empty());
    }
}
