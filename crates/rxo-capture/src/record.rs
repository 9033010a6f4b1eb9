//! One captured packet, and the interface it was seen on.

use rxo_frame::Instant;

use super::{LinkType, Options, SharedBytes};

/// One packet of a capture.
///
/// It shares the chunk that it was read in. Who keeps few records for long should keep a
/// [`SharedBytes::detached`] copy: one record keeps a whole chunk.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// What the file holds of it, from its first link-layer byte.
    pub bytes: SharedBytes,
    /// How many bytes it had on the wire; more than `bytes` when the capture cut it.
    pub original_bytes: u32,
    /// Which of the capture's interfaces saw it: an index into what the reader lists.
    pub interface: u32,
    /// When, in nanoseconds since 1970 UTC: the nearest instant to what the file says. A simple
    /// packet block of pcapng has no time: it is given that of the record before it.
    pub at: Instant,
    /// When, as the file counts: ticks of its interface's [`Clock`](super::Clock), in pcap the
    /// seconds in the upper 32 bits and the fraction in the lower. `None` of a simple packet block,
    /// which has no time.
    pub ticks: Option<u64>,
    /// The record's header as it stands in the file, of the pcap files whose headers say more than
    /// the other fields here: version 2.3 and those of the patched libpcap. Empty of all others.
    pub head: SharedBytes,
    /// What else the file says of it.
    pub options: Options,
}

impl Record {
    /// Whether the capture holds only its beginning.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        (self.bytes.as_ref().len() as u64) < u64::from(self.original_bytes)
    }

    /// Whether it came to or left the machine that captured, when the file says: in an option
    /// of pcapng, or in a cooked header. `link` is its interface's.
    #[must_use]
    pub fn direction(&self, link: LinkType) -> Option<Direction> {
        self.options.direction().or_else(|| link.direction(self.bytes.as_ref()))
    }
}

/// Which way a packet went, seen from the machine that captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the machine.
    In,
    /// From the machine.
    Out,
}

/// An interface that packets of a capture were seen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// What its packets begin with.
    pub link: LinkType,
    /// The most bytes kept of a packet; `None` when all were.
    pub snap_bytes: Option<u32>,
    /// Its name on the machine that captured, when the file says.
    pub name: Option<String>,
}
