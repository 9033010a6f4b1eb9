//! Sections and interfaces as a file describes them: what it takes to describe them again.
//!
//! [`Interface`](super::Interface) is what readers of packets need; this is the rest, kept for
//! whoever writes the file anew. Memory is bounded by [`limits`](super::limits).

use super::LinkType;
use super::limits::{DESCRIBED, DESCRIBED_BYTES};

/// A section or an interface, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// How many records stand before it.
    pub records_before: u64,
    /// What is described.
    pub part: Part,
}

/// A section or an interface. Options are bytes as they would stand in a little-endian file, each
/// padded to four bytes, without the one that ends them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A section of a pcapng file begins; the interfaces behind it are its own.
    Section {
        /// What it says of itself.
        options: Vec<u8>,
    },
    /// An interface. A pcap file has one.
    Interface {
        /// What its packets begin with.
        link: LinkType,
        /// The most bytes kept of a packet, as the file says it; 0 is no limit.
        snap_bytes: u32,
        /// What it says of itself: name, resolution of time and all others.
        options: Vec<u8>,
    },
}

/// What a file has described so far, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) parts: Vec<Described>,
    /// Whether it is all that the file described.
    pub(super) is_cut: bool,
    option_bytes: usize,
}

impl Outline {
    /// Of a file that has one.
    pub(super) fn of_one(part: Part) -> Self {
        Self { parts: vec![Described { records_before: 0, part }], ..Self::default() }
    }

    /// Takes one more in, behind so many records, unless the file describes more than is kept.
    pub(super) fn add(&mut self, records_before: u64, part: Part) {
        let (Part::Section { options } | Part::Interface { options, .. }) = &part;
        let option_bytes = self.option_bytes + options.len();
        if self.parts.len() == DESCRIBED || option_bytes > DESCRIBED_BYTES {
            self.is_cut = true;
            return;
        }
        self.option_bytes = option_bytes;
        self.parts.push(Described { records_before, part });
    }
}
