//! A captured packet, and the interface on which it was captured.

use rxo_frame::Instant;

use super::{Direction, LinkType, Options, SharedBytes};

/// One packet of a capture.
///
/// The record shares the chunk of memory that it was read into, and the whole chunk stays allocated until the
/// record is dropped. If packets are a small part of the file, the record owns a copy instead. Use
/// [`SharedBytes::detached`] to keep a few records for a long time.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The captured bytes of the packet, from its first link-layer byte.
    pub bytes: SharedBytes,
    /// The length of the packet on the wire, in bytes; more than `bytes` if the capture truncated it.
    pub original_bytes: u32,
    /// The index of the packet's interface in the reader's list.
    pub interface: u32,
    /// The time of the packet in nanoseconds since 1970 UTC. A finer time in the file is rounded down. A simple
    /// packet block of pcapng has no time; its record gets the time of the record before it.
    pub at: Instant,
    /// The time of the packet as it is in the file: ticks of the [`Clock`](super::Clock) of the packet's
    /// interface. In pcap, the upper 32 bits are the seconds and the lower 32 bits are the fraction. `None` for
    /// a simple packet block, which has no time.
    pub ticks: Option<u64>,
    /// The header of the record as it is in the file, if the header contains more than the other fields of this
    /// struct. This is the case in pcap files of version 2.3 and of the patched libpcap. Otherwise this field
    /// is empty.
    pub head: SharedBytes,
    /// The options of the packet in the file.
    pub options: Options,
}

impl Record {
    /// Returns `true` if the capture truncated the packet.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        (self.bytes.as_ref().len() as u64) < u64::from(self.original_bytes)
    }

    /// Returns the number of bytes of the file that this record keeps in memory.
    pub(super) fn kept_bytes(&self) -> usize {
        self.bytes.as_ref().len() + self.head.as_ref().len() + self.options.byte_len()
    }

    /// Returns the direction of the packet, received or sent by the capturing machine: from an option of
    /// pcapng, or from a cooked header. `None` if the file does not state the direction. `link` is the link
    /// type of the packet's interface.
    #[must_use]
    pub fn direction(&self, link: LinkType) -> Option<Direction> {
        self.options.direction().or_else(|| link.direction(self.bytes.as_ref()))
    }
}

/// An interface on which packets of a capture were captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The link type of the interface's packets.
    pub link: LinkType,
    /// The maximum number of bytes that were captured of a packet; `None` for no limit.
    pub snap_bytes: Option<u32>,
    /// The interface's name on the capturing machine; `None` if the file does not contain the name.
    pub name: Option<String>,
}
