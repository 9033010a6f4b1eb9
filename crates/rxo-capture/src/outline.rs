//! The descriptions of sections and interfaces, complete enough to write them again.
//!
//! [`Interface`](super::Interface) has the fields that readers of packets need; this is the rest, for writing
//! the file again. Memory is bounded by [`limits`](super::limits).

use super::LinkType;
use super::limits::{DESCRIBED, DESCRIBED_BYTES};

/// A section or an interface, and its position in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Number of records before this part.
    pub records_before: u64,
    /// The section or interface.
    pub part: Part,
}

/// A section or an interface. Options are bytes as in a little-endian file, each padded to four
/// bytes, without the one that ends the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A section of a pcapng file. The interfaces after it belong to it.
    Section {
        /// The section's options.
        options: Vec<u8>,
    },
    /// An interface. A pcap file has one.
    Interface {
        /// The link type of its packets.
        link: LinkType,
        /// The snap length in the file; 0 means no limit.
        snap_bytes: u32,
        /// The interface's options: name, resolution of time and all others.
        options: Vec<u8>,
    },
}

/// The descriptions in a file so far, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) parts: Vec<Described>,
    /// True if some descriptions were dropped because of the limits.
    pub(super) is_cut: bool,
    option_bytes: usize,
}

impl Outline {
    /// Makes the outline of a file with a single part.
    pub(super) fn of_one(part: Part) -> Self {
        Self { parts: vec![Described { records_before: 0, part }], ..Self::default() }
    }

    /// Adds a part after `records_before` records, unless that exceeds the limits.
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
