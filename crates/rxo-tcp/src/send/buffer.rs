//! The send buffer: data that the peer has not acknowledged. The application has written the data, which is
//! then copied, or has lent it without a copy.

use core::fmt;

use rxo_frame::SharedBytes;

use super::chunks::{CHUNK_BYTES, Chunks, most_chunks};
use super::lent::Lent;

/// The data to be sent, starting at SND.UNA. Written data is copied; lent data stays in its own memory, and its
/// position among the copied data is recorded. Copied and lent data count towards the size of the buffer.
/// Allocates memory when needed.
///
/// Public so that owners can build a [`Transmit`](crate::Transmit) of their own for tests.
pub struct SendBuffer {
    copied: Chunks,
    lent: Lent,
    size: u32,
}

impl SendBuffer {
    /// Returns the maximum memory, in bytes, that a buffer for `bytes` bytes of data uses, in whole chunks,
    /// if nothing is lent.
    #[must_use]
    pub const fn most_memory(bytes: u32) -> u64 {
        most_chunks(bytes as usize) as u64 * CHUNK_BYTES as u64
    }

    /// Creates an empty buffer for at most `bytes` bytes of data.
    #[must_use]
    pub fn with_capacity(bytes: u32) -> Self {
        Self { copied: Chunks::with_capacity(bytes), lent: Lent::default(), size: bytes }
    }

    /// Changes the maximum length of the data to `bytes` bytes, or to the length of the present data if that
    /// is more.
    pub(crate) fn resize(&mut self, bytes: u32) {
        self.size = bytes.max(self.len());
        self.copied.resize(self.size);
    }

    /// Frees unused memory, which is allocated again when needed.
    pub(crate) fn free_unused(&mut self) {
        self.copied.free_unused();
        self.lent.free_unused();
    }

    /// Returns the maximum length of the data, in bytes.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Returns the length of the data, in bytes.
    pub(crate) fn len(&self) -> u32 {
        self.copied.len() + self.lent.bytes()
    }

    /// Returns the free space, in bytes.
    pub(crate) fn room(&self) -> u32 {
        self.size - self.len()
    }

    /// Appends a copy of as much of `data` as fits. Returns the number of bytes copied.
    pub fn write(&mut self, data: &[u8]) -> usize {
        self.copied.write(&data[..data.len().min(self.room() as usize)])
    }

    /// Appends as much of `text` as fits and removes that part from `text`. Returns the number of bytes
    /// appended. Copies only a part that is shorter than 2 KiB and does not continue the previous part. Thus
    /// the number of parts is limited by the size of the buffer.
    pub fn append_shared(&mut self, text: &mut SharedBytes) -> usize {
        self.append_shared_at_most(text, self.room())
    }

    /// Appends at most `most` bytes of `text`, which must fit, without a copy, like
    /// [`SendBuffer::append_shared`].
    pub(crate) fn append_shared_at_most(&mut self, text: &mut SharedBytes, most: u32) -> usize {
        let fits = text.len().min(most as usize);
        if fits >= LEAST_LENT_BYTES || self.lent.is_continued_by(text, self.copied.len()) {
            self.lent.push(text.split_to(fits), self.copied.len());
            return fits;
        }
        let bytes = text.as_ref();
        let taken = self.copied.write(&bytes[..fits.min(bytes.len())]);
        text.advance(taken);
        taken
    }

    /// Removes the first `bytes` bytes of the data, or all if there are fewer. Drops lent parts whose bytes are
    /// all removed.
    #[inline]
    pub fn advance(&mut self, bytes: u32) {
        let from_copied = if self.lent.is_empty() { bytes } else { self.lent.advance(bytes) };
        self.copied.advance(from_copied);
    }

    /// Returns the data from the index `from` up to `to`. Indices at which the buffer has no data are omitted.
    pub fn text(&self, from: u32, to: u32) -> Text<'_> {
        let to = to.min(self.len());
        let from = from.min(to);
        let ahead = if from < to { self.slice(from, to) } else { &[] };
        Text { buffer: Some(self), from, to, ahead }
    }

    /// Returns the data from `from` up to `to`, which must be in the buffer. If that data is not contiguous,
    /// returns only its first contiguous part.
    #[inline(never)]
    fn slice(&self, from: u32, to: u32) -> &[u8] {
        if self.lent.is_empty() {
            return self.copied.slice(from, to);
        }
        match self.lent.find(from, to) {
            Place::Lent(bytes) => bytes,
            Place::Copied { from, to } => self.copied.slice(from, to),
        }
    }
}

/// The location of some data in the send buffer.
pub(super) enum Place<'a> {
    /// The data is in memory that the application has lent.
    Lent(&'a [u8]),
    /// The data was copied, and lies between these indices.
    Copied { from: u32, to: u32 },
}

impl fmt::Debug for SendBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendBuffer({} of {} bytes)", self.len(), self.size)
    }
}

/// A range of data in a send buffer: a view that is cheap to copy and to split.
#[derive(Clone, Copy, Default)]
pub struct Text<'a> {
    /// The send buffer that holds the data; `None` if the data is empty.
    buffer: Option<&'a SendBuffer>,
    from: u32,
    to: u32,
    /// The contiguous bytes that start at the index `from`, possibly beyond `to`. Empty if these bytes must
    /// still be looked up.
    ahead: &'a [u8],
}

impl<'a> Text<'a> {
    /// The empty range, without bytes.
    pub const EMPTY: Self = Self { buffer: None, from: 0, to: 0, ahead: &[] };

    /// Returns the length of the data, in bytes.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        (self.to - self.from) as usize
    }

    /// Returns `true` if there is no data.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// Removes the first `bytes` bytes of the data, or all if there are fewer, and returns them.
    #[inline]
    #[must_use]
    pub fn split_to(&mut self, bytes: usize) -> Self {
        let taken = bytes.min(self.len());
        let cut = self.from + taken as u32;
        let front = Self { to: cut, ..*self };
        let rest = self.ahead.get(taken..).unwrap_or_default();
        self.from = cut;
        self.ahead = if rest.is_empty() && cut < self.to {
            look_ahead(self.buffer, cut, self.to)
        } else {
            rest
        };
        front
    }

    /// Returns the bytes as one or more contiguous slices.
    #[inline]
    #[must_use]
    pub const fn slices(self) -> Slices<'a> {
        Slices(self)
    }

    /// Returns a copy of the bytes. Allocates.
    #[must_use]
    pub fn to_vec(self) -> alloc::vec::Vec<u8> {
        self.slices().flatten().copied().collect()
    }
}

/// Returns the contiguous data from `from` up to `to`. Called once for each piece, not for each segment. The
/// arguments are passed by value, so that the compiler keeps a [`Text`] in registers while it is split.
#[cold]
#[inline(never)]
fn look_ahead(buffer: Option<&SendBuffer>, from: u32, to: u32) -> &[u8] {
    buffer.map_or(&[], |buffer| buffer.slice(from, to))
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.slices().flatten()).finish()
    }
}

/// The contiguous slices of a [`Text`], in order; none is empty.
#[derive(Clone, Debug)]
pub struct Slices<'a>(Text<'a>);

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        let Text { buffer, from, to, ahead } = self.0;
        let buffer = buffer.filter(|_| from < to)?;
        let slice = if ahead.is_empty() { buffer.slice(from, to) } else { ahead };
        let slice = slice.get(..(to - from) as usize).unwrap_or(slice);
        self.0.ahead = &[];
        self.0.from += slice.len() as u32;
        // Stop if the owner has dropped the bytes.
        (!slice.is_empty()).then_some(slice)
    }
}

/// The length in bytes below which lent data is copied, because a copy costs less than tracking the part.
const LEAST_LENT_BYTES: usize = 2 << 10;

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// A call of the application on a send buffer.
    #[derive(Clone, Debug)]
    enum Call {
        Write(u32),
        Lend(u32),
        Advance(u32),
        Resize(u32),
    }

    fn calls() -> impl Strategy<Value = Vec<Call>> {
        let call = prop_oneof![
            (0..9_000_u32).prop_map(Call::Write),
            (0..60_u32).prop_map(Call::Write),
            (0..12_000_u32).prop_map(Call::Lend),
            (0..15_000_u32).prop_map(Call::Advance),
            (0..40_000_u32).prop_map(Call::Resize),
        ];
        prop::collection::vec(call, 0..80)
    }

    /// Returns `count` bytes whose values depend on their position, beginning at `from`.
    fn bytes(from: u32, count: u32) -> Vec<u8> {
        (from..from + count).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    proptest! {
        /// The naive oracle is a queue of bytes, for any mix of copied and lent text.
        #[test]
        fn it_is_a_queue(calls in calls(), from in any::<prop::sample::Index>()) {
            let mut buffer = SendBuffer::with_capacity(20_000);
            let (mut queue, mut size, mut written) = (VecDeque::<u8>::new(), 20_000, 0);
            let owner = Arc::new(());
            let whole = SharedBytes::from(bytes(0, 1 << 20));
            for call in calls {
                let (taken, asked) = match call {
                    Call::Write(count) => (buffer.write(&bytes(written, count)), count),
                    Call::Lend(count) => {
                        let lent = Owned(bytes(written, count), Arc::clone(&owner));
                        let mut text = SharedBytes::from_owner(lent);
                        if count % 2 == 0 {
                            // With luck this text continues the part that was lent last.
                            text = whole.clone();
                            text.advance(written as usize);
                            text = text.first(count as usize);
                        }
                        let taken = buffer.append_shared(&mut text);
                        prop_assert_eq!(&text[..], &bytes(written, count)[taken..]);
                        (taken, count)
                    }
                    Call::Advance(count) => {
                        buffer.advance(count);
                        queue.drain(..queue.len().min(count as usize));
                        continue;
                    }
                    Call::Resize(to) => {
                        buffer.resize(to);
                        size = queue.len().max(to as usize);
                        continue;
                    }
                };
                prop_assert_eq!(taken, (size - queue.len()).min(asked as usize));
                queue.extend(bytes(written, taken as u32));
                written += taken as u32;
                prop_assert_eq!((buffer.len() as usize, buffer.size() as usize), (queue.len(), size));
                prop_assert_eq!(buffer.room() as usize, size - queue.len());
                let from = from.index(queue.len() + 1);
                let mut seen = buffer.text(from as u32, u32::MAX);
                let mut front = seen.split_to(1_448).to_vec();
                front.extend(seen.to_vec());
                prop_assert!(front.iter().eq(queue.iter().skip(from)));
                let kept = Arc::strong_count(&owner) - 1;
                prop_assert!(kept <= size / LEAST_LENT_BYTES + 1, "{} parts of {}", kept, size);
            }
            buffer.advance(u32::MAX);
            prop_assert_eq!((buffer.len(), Arc::strong_count(&owner)), (0, 1));
        }
    }

    struct Owned(Vec<u8>, #[expect(dead_code, reason = "it is counted")] Arc<()>);

    impl AsRef<[u8]> for Owned {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    #[test]
    fn little_is_copied_and_much_is_not() {
        let mut buffer = SendBuffer::with_capacity(10_000);
        let much = Arc::new([7; 5_000]);
        for (text, owners) in [(0..2_047, 1), (0..2_048, 2), (2_000..5_000, 3)] {
            let mut shared = SharedBytes::from_owner(Part(Arc::clone(&much))).first(text.end);
            shared.advance(text.start);
            assert_eq!((buffer.append_shared(&mut shared), shared.len()), (text.len(), 0));
            drop(shared);
            assert_eq!(Arc::strong_count(&much), owners);
        }
        buffer.advance(2_047 + 2_048);
        assert_eq!(Arc::strong_count(&much), 2);
        let piece = buffer.text(100, 300).slices().next();
        assert_eq!(piece.map(<[u8]>::as_ptr), Some(much[2_100..].as_ptr()), "where it was");
    }

    struct Part(Arc<[u8; 5_000]>);

    impl AsRef<[u8]> for Part {
        fn as_ref(&self) -> &[u8] {
            &self.0[..]
        }
    }
}
