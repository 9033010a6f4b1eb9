//! The captures of a part, and the numbers that its flows have for them.
//!
//! A flow names captures by number, in the order in which they came to this part: four bytes, and no flow changes
//! when a capture comes before others. A saved part has their ranks instead, which do not depend on the order of
//! merging.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::report::Source;

/// The place of a capture: its series, and its number in it.
pub(super) type Place = (u64, u32);

/// The captures of a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captures {
    /// The captures by place, each with its number.
    by_place: BTreeMap<Place, (u32, Source)>,
    /// The places by number.
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
    /// Adds a capture, or the part of it that another part read. Returns its number.
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

    /// Adds the captures of another part. Returns their numbers here, by their numbers there.
    pub(super) fn add(&mut self, mut other: Self) -> Vec<u32> {
        let captures = other.places.iter().filter_map(|place| other.by_place.remove_entry(place));
        captures.map(|(place, (_, source))| self.put(place, source)).collect()
    }

    /// Iterates over all captures, by place.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Place, &Source)> {
        self.by_place.iter().map(|(place, (_, source))| (place, source))
    }

    /// Iterates over all captures in order.
    pub(in super::super) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.by_place.values().map(|(_, source)| source)
    }

    /// Returns the names of all captures, by number.
    pub(in super::super) fn names(&self) -> Vec<Arc<str>> {
        let source = |place| self.by_place.get(place);
        let name = |place| source(place).map_or("", |(_, source)| &source.name).into();
        self.places.iter().map(name).collect()
    }

    /// Returns the rank of each capture, by number.
    pub(super) fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.places.len()];
        for (rank, (number, _)) in (0..).zip(self.by_place.values()) {
            ranks[*number as usize] = rank;
        }
        ranks
    }
}

/// The numbers of another part's captures in this part.
pub(in super::super) struct Numbering<'a> {
    /// The numbers here, by number there.
    pub(super) numbers: &'a [u32],
    pub(super) captures: &'a Captures,
}

impl Numbering<'_> {
    /// Returns the number here of a capture's number `there`; the number of no capture stays.
    pub(in super::super) fn number(&self, there: u32) -> u32 {
        self.numbers.get(there as usize).copied().unwrap_or(there)
    }

    /// Returns the place of the capture with this number here; `None` if there is none.
    pub(in super::super) fn place(&self, here: u32) -> Option<Place> {
        self.captures.places.get(here as usize).copied()
    }
}
