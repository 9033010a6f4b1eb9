//! Shared bytes: bytes with several owners, for data that is sent without a copy.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::ops::Deref;

/// A range of immutable bytes with shared ownership. Clones and parts share the bytes, which are dropped with
/// the last clone or part.
///
/// An application passes such bytes to a connection, which keeps them until the peer has acknowledged them. The
/// owner can be a `Vec<u8>`, a file's pages in memory, the `Bytes` of the crate `bytes`, or any other type that
/// provides a slice. Even a small part keeps the whole owner in memory.
///
/// # Examples
/// ```
/// use rxo_frame::SharedBytes;
///
/// let mut text = SharedBytes::from(b"hello world".to_vec());
/// let hello = text.split_to(5);
/// assert_eq!((&hello[..], &text[..]), (&b"hello"[..], &b" world"[..]));
/// ```
#[derive(Clone, Default)]
pub struct SharedBytes {
    owner: Owner,
    start: usize,
    end: usize,
}

#[derive(Clone)]
enum Owner {
    Static(&'static [u8]),
    Shared(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl SharedBytes {
    /// Creates a range of all bytes of `owner`, which is moved to the heap: one allocation. `owner` must return
    /// the same bytes at each call of `as_ref`. If the bytes change, a connection sends a mixture of old and
    /// new bytes, or segments with a wrong checksum. If the slice becomes shorter, the range reads as empty.
    ///
    /// A mapped file needs more care. If the file shrinks, reading a page beyond its end raises SIGBUS in the
    /// thread that sends, which ends the process. Share a mapping only of a file that nobody else can
    /// truncate; read other files into memory.
    pub fn from_owner(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        let end = owner.as_ref().len();
        Self { owner: Owner::Shared(Arc::new(owner)), start: 0, end }
    }

    /// Returns the number of bytes in this range.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.end - self.start
    }

    /// Returns `true` if there are no bytes in this range.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Removes the first `bytes` bytes from this range, or all if there are fewer, and returns them. Copies nothing.
    #[must_use = "`advance` drops them"]
    pub fn split_to(&mut self, bytes: usize) -> Self {
        if bytes >= self.len() {
            return mem::take(self);
        }
        let cut = self.start + bytes;
        let front = Self { end: cut, ..self.clone() };
        self.start = cut;
        front
    }

    /// Drops the first `bytes` bytes of this range, or all if there are fewer.
    pub fn advance(&mut self, bytes: usize) {
        if bytes >= self.len() {
            *self = Self::default();
        } else {
            self.start += bytes;
        }
    }

    /// Returns `true` if `next` begins where this range ends, in the memory of the same owner.
    #[must_use]
    pub fn is_followed_by(&self, next: &Self) -> bool {
        let is_same_owner = match (&self.owner, &next.owner) {
            (Owner::Shared(own), Owner::Shared(other)) => Arc::ptr_eq(own, other),
            (Owner::Static(own), Owner::Static(other)) => core::ptr::eq(*own, *other),
            _ => false,
        };
        is_same_owner && self.end == next.start
    }

    /// Appends `next` if it [follows](SharedBytes::is_followed_by) this range. Copies nothing.
    ///
    /// # Errors
    /// `next` itself, if it does not follow this range.
    pub fn join(&mut self, next: Self) -> Result<(), Self> {
        if !self.is_followed_by(&next) {
            return Err(next);
        }
        self.end = next.end;
        Ok(())
    }

    /// Returns the first `bytes` bytes of this range, or all if there are fewer. Copies nothing.
    #[must_use]
    pub fn first(&self, bytes: usize) -> Self {
        self.clone().split_to(bytes)
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let bytes = match &self.owner {
            Owner::Static(bytes) => bytes,
            Owner::Shared(owner) => (**owner).as_ref(),
        };
        // A range beyond an owner that shrank reads as empty.
        bytes.get(self.start..self.end).unwrap_or_default()
    }
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from_owner(bytes)
    }
}

impl From<&'static [u8]> for SharedBytes {
    fn from(bytes: &'static [u8]) -> Self {
        Self { owner: Owner::Static(bytes), start: 0, end: bytes.len() }
    }
}

impl Default for Owner {
    fn default() -> Self {
        Self::Static(&[])
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn parts_share_the_bytes_and_the_last_drops_them() {
        let owner = Arc::new([1_u8, 2, 3, 4]);
        let mut bytes = SharedBytes::from_owner(Alive(Arc::clone(&owner)));
        let front = bytes.split_to(3);
        assert_eq!((&front[..], &bytes[..]), (&[1, 2, 3][..], &[4][..]));
        drop(front);
        assert_eq!(Arc::strong_count(&owner), 2);
        bytes.advance(5);
        assert!(bytes.is_empty() && bytes.first(1).is_empty());
        drop(bytes);
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    #[test]
    fn only_what_follows_in_the_same_owner_is_joined() {
        let whole = SharedBytes::from(b"abcdef".to_vec());
        let mut rest = whole.clone();
        let mut front = rest.split_to(2);
        let middle = rest.split_to(2);
        let rest = front.join(rest).unwrap_err();
        assert!(front.join(middle).is_ok() && front.join(rest).is_ok());
        assert_eq!(&front[..], b"abcdef");
        let other = SharedBytes::from(b"abcdefgh".to_vec());
        let mut ends = other.clone();
        ends.advance(6);
        assert!(!front.is_followed_by(&ends) && !whole.is_followed_by(&whole));
        assert!(!SharedBytes::from(&b"ab"[..]).is_followed_by(&front));
    }

    struct Alive(Arc<[u8; 4]>);

    impl AsRef<[u8]> for Alive {
        fn as_ref(&self) -> &[u8] {
            &self.0[..]
        }
    }

    #[test]
    fn bytes_of_the_program_have_no_owner() {
        let mut bytes = SharedBytes::from(&b"abc"[..]);
        assert_eq!((&bytes.split_to(9)[..], bytes.len()), (&b"abc"[..], 0));
        assert!(SharedBytes::default().is_empty());
    }

    /// The owner breaks the contract, but nothing may panic.
    #[test]
    fn an_owner_that_shrinks_reads_as_nothing() {
        struct Shrinks(AtomicBool);
        impl AsRef<[u8]> for Shrinks {
            fn as_ref(&self) -> &[u8] {
                if self.0.swap(true, Ordering::Relaxed) { &[] } else { &[1, 2] }
            }
        }
        let bytes = SharedBytes::from_owner(Shrinks(AtomicBool::new(false)));
        assert_eq!((bytes.len(), &bytes[..]), (2, &[][..]));
    }
}
