//! Coalesces captures and restores them.
//!
//! A [`Coalescer`] processes the records of a capture and writes the packets that the host's stack would have
//! received: single packets unchanged, and each aggregate as one packet. An [`Expander`] processes the records
//! of such a file and writes the original records, byte for byte and in order. The modules, from the bottom up:
//!
//! * [`note`]: the codec for properties that a merged packet cannot express.
//! * `merged`: an aggregate as one packet, with a complete checksum.
//! * `beside`: the parts of a record that neither its bytes nor pcapng's own fields express.
//! * `remark`: the contents of a packet's custom option, which mainly consists of the note.
//! * `outline`: sections and interfaces as bytes. `origin`: the custom option of the section.
//! * `crc`, `digest`: a checksum of everything that is restored, so that no change goes unnoticed.
//! * `span`, `order`: bound how far deliveries deviate from the order of arrival, on both sides.
//! * `sink`, `output`: write deliveries to the coalesced file. `original`: writes the restored
//!   file, pcap or pcapng.
//!
//! # The coalesced file
//! A delivery has the position and the time of its first packet. Deliveries of one flow are in the engine's
//! order. Deliveries of different flows are in the order of arrival, because a capture has both directions of a
//! connection: an ACK must not precede the data that it acknowledges just because the data was held.
//!
//! # What is kept
//! Every record keeps its bytes, its length on the wire, its time in the ticks of its file, its interface and
//! its position; in pcapng also its options (comments, flags and all others), and the absence of a time (simple
//! packet blocks). A pcap file is restored byte for byte, including its version, its fractions of a second, and
//! a truncated last record. For a pcapng file, every section is restored with its options, and every interface
//! with its link type, snap length and options. The digest covers everything that is restored, so a changed
//! file is refused.
//!
//! # What is not kept
//! A pcapng file loses its statistics, name resolution, secrets, custom blocks, byte order, the drop count of
//! an obsolete packet block, and the contents of reserved fields and padding.
//!
//! # Contract
//! Captures are processed as streams, with memory bounded by [`MOST_RECORDS`] and [`MOST_BYTES`]. The caller
//! opens and reads files. No input causes a panic.

use std::fmt;
use std::io::{self, Write};

mod beside;
mod coalesce;
mod crc;
mod digest;
mod error;
mod expand;
mod held;
mod merged;
pub mod note;
mod order;
mod origin;
mod original;
mod outline;
mod output;
mod remark;
mod sink;
mod span;

#[cfg(test)]
mod tests;

pub use self::coalesce::{Coalesced, Coalescer, Settings};
pub use self::error::RewriteError;
pub use self::expand::{Expanded, Expander};
pub use self::original::FileFormat;
pub(crate) use self::remark::restored;

/// The output of a rewritten capture. There is one type for all outputs, so that the writing code is compiled
/// only once. The code that writes to this output buffers its data.
struct RewriteOutput<'w>(&'w mut dyn Write);

impl Write for RewriteOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl fmt::Debug for RewriteOutput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RewriteOutput(..)")
    }
}

/// The enterprise number of rxo's custom options in pcapng. rxo has no enterprise number of its own and uses
/// the number that is reserved for examples (RFC 5612). To be recognized, its options begin with [`MAGIC`].
const ENTERPRISE: u32 = 32_473;

/// The beginning of all options that rxo writes: name and version of the format.
const MAGIC: &[u8] = &[b'r', b'x', b'o', VERSION];
const NAME: &[u8] = b"rxo";
const VERSION: u8 = 2;
/// All possible versions of the format. Printable characters are excluded.
const VERSIONS: core::ops::Range<u8> = 1..b' ';

/// The maximum number of records that may arrive after the oldest undelivered record. At this limit all held
/// records are delivered, because expanding must keep all later records until the oldest record is restored.
pub const MOST_RECORDS: usize = 1 << 17;

/// The maximum number of bytes in the records that arrive after the oldest undelivered record.
pub const MOST_BYTES: usize = 64 << 20;
