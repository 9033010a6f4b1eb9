//! One captured packet, and the interface it was seen on.

use rxo_frame::Instant;

use super::{LinkType, SharedBytes};

/// One packet of a capture.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// What the file holds of it, from its first link-layer byte.
    pub bytes: SharedBytes,
    /// How many bytes it had on the wire; more than `bytes` when the capture cut it.
    pub original_bytes: u32,
    /// Which of the capture's interfaces saw it: an index into what the reader lists.
    pub interface: u32,
    /// When, in nanoseconds since 1970 UTC.
    pub at: Instant,
}

impl Record {
    /// Whether the capture holds only its beginning.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        (self.bytes.as_ref().len() as u64) < u64::from(self.original_bytes)
    }
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
