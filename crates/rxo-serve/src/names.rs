//! The names of a directory, sorted and bounded.

use std::collections::BTreeSet;
use std::ops::Bound;

/// The first [`Names::MOST`] names of a directory, in byte order.
///
/// The owner of a [`Conversation`](crate::Conversation) reads the directory once and inserts each name.
/// Conversations that list the same directory may share the result.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: BTreeSet<Vec<u8>>,
    bytes: usize,
    is_cut: bool,
}

impl Names {
    /// The maximum number of names on a page. If all have 255 bytes, they take about 3 MB.
    pub const MOST: usize = 10_000;

    /// Inserts a name; the name of a directory must end with `/`. If the list then exceeds [`Names::MOST`]
    /// names, drops the last name. O(log n); allocates.
    pub fn insert(&mut self, name: Vec<u8>) {
        let (is_full, bytes) = (self.names.len() == Self::MOST, memory_of(&name));
        if is_full && self.names.last().is_some_and(|last| *last < name) {
            self.is_cut = true;
        } else if self.names.insert(name) {
            self.bytes += bytes;
            if is_full {
                self.bytes -= self.names.pop_last().map_or(0, |last| memory_of(&last));
                self.is_cut = true;
            }
        }
    }

    /// Returns the memory of the names in bytes, without the memory of the tree that holds them. O(1).
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Records that the directory has more names than were inserted.
    pub const fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Returns `true` if the directory has more names than this list.
    pub(crate) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the names after `last`, in order; all names if `last` is `None`.
    pub(crate) fn after(&self, last: Option<&[u8]>) -> impl Iterator<Item = &[u8]> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.names.range::<[u8], _>((from, Bound::Unbounded)).map(Vec::as_slice)
    }
}

fn memory_of(name: &[u8]) -> usize {
    size_of::<Vec<u8>>() + name.len()
}

impl Extend<Vec<u8>> for Names {
    fn extend<I: IntoIterator<Item = Vec<u8>>>(&mut self, names: I) {
        names.into_iter().for_each(|name| self.insert(name));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

        #[test]
        fn the_first_names_stay_in_whatever_order_they_come(
            mut numbers in Just((0..11_000_u32).collect::<Vec<_>>()).prop_shuffle(),
            count in 9_990..10_010_usize,
        ) {
            numbers.truncate(count);
            let mut names = Names::default();
            names.extend(numbers.iter().map(|number| number.to_be_bytes().to_vec()));
            prop_assert_eq!(names.is_cut(), count > Names::MOST);
            numbers.sort_unstable();
            let first: Vec<_> = numbers.iter().take(Names::MOST).map(|n| n.to_be_bytes()).collect();
            prop_assert!(names.after(None).eq(first.iter().map(|name| &name[..])));
            prop_assert_eq!(names.bytes(), first.len() * (size_of::<Vec<u8>>() + 4));
            let rest = names.after(Some(&first[4_000]));
            prop_assert!(rest.eq(first[4_001..].iter().map(|name| &name[..])));
        }
    }
}
