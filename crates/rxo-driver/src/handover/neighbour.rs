//! Neighbour: a permanent entry of the neighbour table, or a proxy entry.

use rxo_netlink::{Request, u32_at};

use super::item::{Item, with_index};

/// A neighbour entry, as the kernel listed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Neighbour(pub(super) Item);

/// The length of `ndmsg` in bytes: family, interface, state, flags, type.
pub(super) const HEADER_BYTES: usize = 12;
const INDEX_AT: usize = 4;
const STATE_AT: usize = 8;
const FLAGS_AT: usize = 10;

impl Neighbour {
    pub(super) fn read(shown: &[u8]) -> Option<Self> {
        Item::read(shown, HEADER_BYTES).map(Self)
    }

    /// Returns the index of the interface on which the entry was configured; `None` if the entry was learned.
    pub(super) fn set_on(&self) -> Option<u32> {
        let header = &self.0.header;
        let is_ip = [libc::AF_INET, libc::AF_INET6].contains(&libc::c_int::from(header[0]));
        let state = u16::from_ne_bytes([header[STATE_AT], header[STATE_AT + 1]]);
        let is_set = state & libc::NUD_PERMANENT != 0 || header[FLAGS_AT] & libc::NTF_PROXY != 0;
        u32_at(header, INDEX_AT).filter(|_| is_ip && is_set)
    }

    /// Returns `true` if `other` is an entry of the same kind for the same address.
    pub(super) fn is_for(&self, other: &Self) -> bool {
        self.0.attribute(libc::NDA_DST) == other.0.attribute(libc::NDA_DST)
            && self.0.header[FLAGS_AT] == other.0.header[FLAGS_AT]
    }

    /// Builds the request that adds the entry to the interface with this index.
    pub(super) fn add(&self, index: u32) -> Request {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        self.on(index).naming(libc::RTM_NEWNEIGH, &[libc::NDA_DST, libc::NDA_LLADDR]).flags(flags)
    }

    /// Builds the request that removes the entry from the interface with this index.
    pub(super) fn remove(&self, index: u32) -> Request {
        self.on(index).naming(libc::RTM_DELNEIGH, &[libc::NDA_DST])
    }

    fn on(&self, index: u32) -> Item {
        Item { header: with_index(&self.0.header, INDEX_AT, index), rest: self.0.rest.clone() }
    }
}
