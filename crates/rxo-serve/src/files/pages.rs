//! The cache of pages: parts of files in the process's own memory, shared by all answers that send them.
//!
//! Pages are copies, not mappings, because the truncation of a file would remove a mapped page in the middle of
//! a send. The cache is bounded in bytes, but a page that is in use stays in memory after its eviction. The
//! clock algorithm first evicts pages that were not used since the last eviction round.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::version::FileVersion;

/// A page: a part of a file's content, copied into memory.
pub type Page = Arc<Vec<u8>>;

/// A cache of recently read pages of files, bounded in bytes.
pub struct Pages {
    most_bytes: usize,
    bytes: usize,
    held: HashMap<Key, Held>,
    /// The keys of all cached pages, in the order of the clock algorithm.
    order: VecDeque<Key>,
    /// The memory of an evicted page, for reuse.
    spare: Vec<u8>,
}

type Key = (FileVersion, u64);

struct Held {
    page: Page,
    was_asked_for: bool,
}

impl Pages {
    /// Creates a cache whose pages have at most `most_bytes` bytes together.
    #[must_use]
    pub fn new(most_bytes: usize) -> Self {
        let (held, order) = (HashMap::new(), VecDeque::new());
        Self { most_bytes, bytes: 0, held, order, spare: Vec::new() }
    }

    pub(super) fn get(&mut self, version: &FileVersion, index: u64) -> Option<Page> {
        let held = self.held.get_mut(&(*version, index))?;
        held.was_asked_for = true;
        Some(Arc::clone(&held.page))
    }

    /// Adds a page to the cache, and evicts other pages to make space.
    pub(super) fn keep(&mut self, version: &FileVersion, index: u64, bytes: Vec<u8>) -> Page {
        let (key, page) = ((*version, index), Arc::new(bytes));
        self.bytes += page.len();
        let held = Held { page: Arc::clone(&page), was_asked_for: false };
        match self.held.insert(key, held) {
            Some(other) => self.bytes -= other.page.len(),
            None => self.order.push_back(key),
        }
        while self.bytes > self.most_bytes && self.evict_next() {}
        page
    }

    #[cfg(test)]
    pub(crate) fn is_within_bounds(&self) -> bool {
        let bytes: usize = self.held.values().map(|held| held.page.len()).sum();
        bytes == self.bytes && bytes <= self.most_bytes && self.order.len() == self.held.len()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns an empty buffer; it reuses the memory of an evicted page if there is one.
    pub(super) fn spare(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.spare)
    }

    /// Examines the next page in clock order: evicts it, unless it was used since the last round. Returns
    /// `false` if the cache is empty.
    fn evict_next(&mut self) -> bool {
        let Some(key) = self.order.pop_front() else { return false };
        let held = self.held.get_mut(&key);
        if held.is_some_and(|held| std::mem::take(&mut held.was_asked_for)) {
            self.order.push_back(key);
        } else if let Some(gone) = self.held.remove(&key) {
            self.bytes -= gone.page.len();
            self.spare = Arc::into_inner(gone.page).unwrap_or_default();
        }
        true
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("pages", &self.held.len())
            .field("bytes", &self.bytes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_and_what_is_asked_for_stays() {
        let version = FileVersion::of(&std::fs::metadata("/").unwrap());
        let mut pages = Pages::new(10_000);
        pages.keep(&version, 0, vec![1; 1_000]);
        for index in 1..100 {
            assert!(pages.get(&version, 0).is_some(), "{index}");
            let page = pages.keep(&version, index, vec![2; 1_000]);
            assert!(pages.is_within_bounds() && page.len() == 1_000);
        }
        assert!(pages.get(&version, 50).is_none() && pages.get(&version, 99).is_some());
        // A page larger than the cache is returned but not cached.
        assert_eq!(pages.keep(&version, 100, vec![3; 20_000]).len(), 20_000);
        assert!(pages.is_within_bounds());
    }
}
