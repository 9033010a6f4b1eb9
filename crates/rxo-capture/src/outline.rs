//! The outline of a file: the descriptions of its sections and interfaces, complete enough to write the same
//! sections and interfaces again.
//!
//! [`Interface`](super::Interface) has only the fields that readers of packets need; an outline has all
//! fields, for writing the file again. Memory is bounded by [`limits`](super::limits).

use super::LinkType;
use super::limits::{DESCRIBED, DESCRIBED_BYTES};

/// A section or an interface, and its position in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The number of records in the file before this section or interface.
    pub records_before: u64,
    /// The description of the section or interface.
    pub part: Part,
}

/// The description of a section or an interface. Options are bytes as in a little-endian file, each padded to
/// four bytes, without the end mark of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A section of a pcapng file. The interfaces that follow, up to the next section, belong to this section.
    Section {
        /// The options of the section.
        options: Vec<u8>,
    },
    /// An interface of a capture. A pcap file has a single interface.
    Interface {
        /// The link type of the interface's packets.
        link: LinkType,
        /// The maximum number of bytes that are captured of a packet, as in the file; 0 means no limit.
        snap_bytes: u32,
        /// The options of the interface, such as its name and the resolution of its clock.
        options: Vec<u8>,
    },
}

/// The descriptions of the sections and interfaces that were read so far, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    pub(super) parts: Vec<Described>,
    /// `true` if some descriptions were dropped because of the limits.
    pub(super) is_cut: bool,
    option_bytes: usize,
}

impl Outline {
    /// Creates the outline of a file with a single part, as a pcap file has.
    pub(super) fn of_one(part: Part) -> Self {
        Self { parts: vec![Described { records_before: 0, part }], ..Self::default() }
    }

    /// Adds the description of a section or interface that follows `records_before` records, unless that
    /// would exceed the limits.
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
