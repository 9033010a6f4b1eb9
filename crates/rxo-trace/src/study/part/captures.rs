//! The captures that a part has read, and the numbers by which its flows refer to them.
//!
//! A flow refers to captures by their numbers. Captures are numbered in the order in which they were added to
//! this part. A number takes four bytes, and flows need no change when an earlier capture is added. A saved
//! part contains the ranks of the captures instead, which do not depend on the order of merging.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::report::Source;

/// The identity of a capture: its series, and its number in that series.
pub(super) type Place = (u64, u32);

/// The captures that a part has read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captures {
    /// The captures by identity, each with its number in this part.
    by_place: BTreeMap<Place, (u32, Source)>,
    /// The identities of the captures, by number in this part.
    places: Vec<Place>,
}

impl FromIterator<(Place, Source)> for Captures {
    fn from_iter<T: IntoIterator<Item = (Place, Source)>>(captures: T) -> Self {
        let mut all = Self::default();
        for (place, source) in captures {
            all.put(place, source);
        }
        all
    }
}

impl Captures {
    /// Adds a capture, or the section of a capture that another part has read. Returns its number.
    fn put(&mut self, place: Place, source: Source) -> u32 {
        if let Some((number, mine)) = self.by_place.get_mut(&place) {
            mine.add(source);
            return *number;
        }
        let number = self.places.len() as u32;
        self.places.push(place);
        self.by_place.insert(place, (number, source));
        number
    }

    /// Adds the captures of another part. Returns the new numbers of these captures in this part, indexed by their
    /// numbers in the other part.
    pub(super) fn add(&mut self, mut other: Self) -> Vec<u32> {
        let captures = other.places.iter().filter_map(|place| other.by_place.remove_entry(place));
        captures.map(|(place, (_, source))| self.put(place, source)).collect()
    }

    /// Returns an iterator over all captures, each with its identity, in the order of the identities.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Place, &Source)> {
        self.by_place.iter().map(|(place, (_, source))| (place, source))
    }

    /// Returns an iterator over all captures, in the order of their identities.
    pub(in super::super) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.by_place.values().map(|(_, source)| source)
    }

    /// Returns the names of all captures, by number in this part.
    pub(in super::super) fn names(&self) -> Vec<Arc<str>> {
        let source = |place| self.by_place.get(place);
        let name = |place| source(place).map_or("", |(_, source)| &source.name).into();
        self.places.iter().map(name).collect()
    }

    /// Returns the rank of each capture in the order of identities, by number in this part.
    pub(super) fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.places.len()];
        for (rank, (number, _)) in (0..).zip(self.by_place.values()) {
            ranks[*number as usize] = rank;
        }
        ranks
    }
}

/// The translation of another part's capture numbers to the numbers in this part.
pub(in super::super) struct Numbering<'a> {
    /// The numbers of captures in this part, indexed by the numbers of the same captures in the other part.
    pub(super) numbers: &'a [u32],
    pub(super) captures: &'a Captures,
}

impl Numbering<'_> {
    /// Returns the number in this part of the capture that has the number `there` in the other part. A number without a
    /// capture is returned unchanged.
    pub(in super::super) fn number(&self, there: u32) -> u32 {
        self.numbers.get(there as usize).copied().unwrap_or(there)
    }

    /// Returns the identity of the capture with the number `here`; `None` if there is no such capture.
    pub(in super::super) fn place(&self, here: u32) -> Option<Place> {
        self.captures.places.get(here as usize).copied()
    }
}
