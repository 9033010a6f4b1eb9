//! Lists: doubly linked lists of flow indices, each index in at most one of them.
//!
//! Two modules use such lists: `pairs`, to find the flows between two hosts, and `engine/exits`, to find the flows
//! to flush at the end of a poll under adaptive hold. All operations are O(1). Does not allocate after
//! construction.

use alloc::boxed::Box;

const NO_FLOW: u16 = u16::MAX;

/// A set of lists. The default has no lists and no flow indices.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// The first flow index of each list.
    heads: Box<[u16]>,
    /// The position of each flow index.
    places: Box<[Place]>,
}

/// The position of a flow index: its list, and the flow indices before and after it in this list.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The number of the list; `NO_FLOW` if the flow index is in no list.
    list: u16,
    before: u16,
    after: u16,
}

impl Lists {
    /// Creates `lists` empty lists for `flows` flow indices.
    pub(crate) fn new(lists: usize, flows: usize) -> Self {
        let nowhere = Place { list: NO_FLOW, before: NO_FLOW, after: NO_FLOW };
        Self {
            heads: core::iter::repeat_n(NO_FLOW, lists).collect(),
            places: core::iter::repeat_n(nowhere, flows).collect(),
        }
    }

    /// Returns the number of lists.
    pub(crate) const fn count(&self) -> usize {
        self.heads.len()
    }

    /// Moves `flow` to the front of `list` from any other list. Does nothing if it is in `list` already.
    #[inline]
    pub(crate) fn put(&mut self, list: u16, flow: u16) {
        if self.places.get(usize::from(flow)).is_none_or(|place| place.list == list) {
            return;
        }
        self.remove(flow);
        let after = core::mem::replace(&mut self.heads[usize::from(list)], flow);
        self.places[usize::from(flow)] = Place { list, before: NO_FLOW, after };
        if let Some(next) = self.places.get_mut(usize::from(after)) {
            next.before = flow;
        }
    }

    /// Returns the first flow index of `list`; `None` if the list is empty.
    #[inline]
    pub(crate) fn first(&self, list: u16) -> Option<u16> {
        self.heads.get(usize::from(list)).copied().filter(|flow| *flow != NO_FLOW)
    }

    /// Returns the flow index that follows `flow` in its list; `None` if `flow` is the last.
    #[inline]
    pub(crate) fn after(&self, flow: u16) -> Option<u16> {
        Some(self.places[usize::from(flow)].after).filter(|flow| *flow != NO_FLOW)
    }

    /// Removes `flow` from its list, if it is in one.
    pub(crate) fn remove(&mut self, flow: u16) {
        let Place { list, before, after } = self.places[usize::from(flow)];
        if list == NO_FLOW {
            return;
        }
        match self.places.get_mut(usize::from(before)) {
            Some(before) => before.after = after,
            None => self.heads[usize::from(list)] = after,
        }
        if let Some(after) = self.places.get_mut(usize::from(after)) {
            after.before = before;
        }
        self.places[usize::from(flow)].list = NO_FLOW;
    }
}
