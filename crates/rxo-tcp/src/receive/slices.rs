//! Iterates over in-order data: first the pieces in their original buffers, then the copied pieces.

/// An iterator over the pieces of `first`, then those of `last` that are not empty.
pub(super) struct Slices<'a, I> {
    first: I,
    last: [&'a [u8]; 2],
}

impl<'a, I> Slices<'a, I> {
    pub(super) fn new(first: I, last: [&'a [u8]; 2]) -> Self {
        Self { first, last }
    }
}

impl<'a, I: ExactSizeIterator<Item = &'a [u8]>> Iterator for Slices<'a, I> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.first.next();
        next.or_else(|| self.last.iter_mut().find(|part| !part.is_empty()).map(core::mem::take))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let last = self.last.iter().filter(|part| !part.is_empty()).count();
        let exact = self.first.len() + last;
        (exact, Some(exact))
    }

    #[inline]
    fn fold<A, F: FnMut(A, Self::Item) -> A>(self, first: A, mut then: F) -> A {
        let last = self.first.fold(first, &mut then);
        self.last.into_iter().filter(|part| !part.is_empty()).fold(last, then)
    }
}

impl<'a, I: ExactSizeIterator<Item = &'a [u8]>> ExactSizeIterator for Slices<'a, I> {}
