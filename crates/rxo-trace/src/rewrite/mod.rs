//! Captures coalesced, and given back.
//!
//! A [`Coalescer`] takes the records of a capture and writes what the host's stack would have been
//! handed: single packets as they came, aggregates as one packet each. An [`Expander`] takes the
//! records of such a file and writes the original ones again, byte for byte and in their order.
//! From the bottom up:
//!
//! * [`note`]: the codec of what a merged packet cannot say.
//! * `merged`: an aggregate as one packet, with a complete checksum.
//! * `beside`: what a record has beside its bytes and cannot be said by pcapng's own fields.
//! * `remark`: what rides beside a packet in a custom option: its note, mostly.
//! * `outline`: sections and interfaces, as bytes. `origin`: what rides beside the section.
//! * `crc`, `digest`: one sum over all that is given back, so that nothing can change unnoticed.
//! * `span`, `order`: how far deliveries may run from the order of arrival; bounded on both sides.
//! * `lane`: an interface's engine and its polls, as in [`study`](crate::study).
//! * `sink`, `output`: from deliveries to the coalesced file. `original`: the file given back, pcap or
//!   pcapng.
//!
//! # The coalesced file
//! A delivery stands where its first packet stood, with the time of that one. Deliveries of one flow
//! are in the engine's order; those of different flows in the order of arrival, because a capture
//! has both directions of a connection: an acknowledgement must not stand before the data it
//! speaks of only because that was held.
//!
//! # What is kept
//! Of every record: bytes, length on the wire, time in the ticks of its file, interface, place, and in
//! pcapng its options (comments, flags and all others) and that it has no time (simple packet
//! blocks). A pcap file comes back byte for byte, whatever its version, its fractions of a second and
//! the record that it ends within. Of a pcapng file come back every section with its options and every
//! interface with link type, snap length and options. Whatever is given back is covered by the
//! digest: a file that was changed is refused.
//!
//! # What is not kept
//! Of a pcapng file: statistics, name resolution, secrets, custom blocks, byte order, what an obsolete
//! packet block says of drops, and whatever stands in reserved fields and padding.
//!
//! # Contract
//! Streams, with memory bounded by [`MOST_RECORDS`] and [`MOST_BYTES`]; the caller reads and opens
//! files. Nothing panics, whatever the bytes.

mod beside;
mod coalesce;
mod crc;
mod digest;
mod error;
mod expand;
mod lane;
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

/// Under which number pcapng's custom options ride. rxo has none of its own: this is the one
/// reserved for examples (RFC 5612), so what rides begins with [`MAGIC`] to be told from others.
const ENTERPRISE: u32 = 32_473;

/// What everything of ours begins with: name and version of the format.
const MAGIC: &[u8] = &[b'r', b'x', b'o', VERSION];
const NAME: &[u8] = b"rxo";
const VERSION: u8 = 2;
/// Versions that there will ever be: printable characters are none.
const VERSIONS: core::ops::Range<u8> = 1..b' ';

/// How many records may have arrived since the oldest that is not delivered. Then everything held
/// is delivered, because whoever expands must wait for that one.
pub const MOST_RECORDS: usize = 1 << 17;

/// How many bytes these may have together.
pub const MOST_BYTES: usize = 64 << 20;
