//! Captures coalesced, and given back.
//!
//! A [`Coalescer`] takes the records of a capture and writes what the host's stack would have been
//! handed: single packets as they came, aggregates as one packet each. An [`Expander`] takes the
//! records of such a file and writes the original ones again, byte for byte and in their order.
//! From the bottom up:
//!
//! * [`note`]: the codec of what a merged packet cannot say.
//! * `merged`: an aggregate as one packet, with a complete checksum.
//! * `remark`: what rides beside a packet in a custom option: its note, mostly.
//! * `origin`: what rides beside the section: what kind of file it was.
//! * `digest`: one sum over all records, so that nothing can go missing unnoticed.
//! * `span`, `order`: how far deliveries may run from the order of arrival; bounded on both sides.
//! * `lane`: an interface's engine and its polls, as in [`study`](crate::study).
//! * `output`: the coalesced file. `original`: the file given back, pcap or pcapng.
//!
//! # The coalesced file
//! A delivery stands where its first packet stood, with the time of that one. Deliveries of one flow
//! are in the engine's order; those of different flows in the order of arrival, because a capture
//! has both directions of a connection: an acknowledgement must not stand before the data it
//! speaks of only because that was held.
//!
//! # What is kept
//! Of every record: bytes, length on the wire, time to the nanosecond, interface, place, and in
//! pcapng its options (comments, flags and all others). Of a pcap file: its header, so that the file
//! comes back byte for byte, also one that ends within a record. Of a pcapng file: every interface with link type, snap length and
//! name.
//!
//! # What is not kept
//! Of a pcapng file: what sections and interfaces say beside that (comments, hardware, filters,
//! resolutions, statistics), name resolution, secrets, custom blocks, and how blocks were divided
//! into sections. Times finer than a nanosecond are cut; those of simple packet blocks are those
//! of the record before. Of a pcap file whose records have impossible fractions of a second, or
//! whose format is older than 2.4 or "modified": everything but these.
//!
//! # Contract
//! Streams, with memory bounded by [`MOST_RECORDS`] and [`MOST_BYTES`]; the caller reads and opens
//! files. Nothing panics, whatever the bytes.

mod coalesce;
mod digest;
mod error;
mod expand;
mod lane;
mod merged;
pub mod note;
mod order;
mod origin;
mod original;
mod output;
mod remark;
mod span;

#[cfg(test)]
mod tests;

pub use self::coalesce::{Coalesced, Coalescer, Settings};
pub use self::error::RewriteError;
pub use self::expand::{Expanded, Expander};
pub use self::original::FileFormat;

/// Under which number pcapng's custom options ride. rxo has none of its own: this is the one
/// reserved for examples (RFC 5612), so what rides begins with [`MAGIC`] to be told from others.
const ENTERPRISE: u32 = 32_473;

/// What everything of ours begins with: name and version.
const MAGIC: &[u8] = b"rxo\x01";

/// How many records may have arrived since the oldest that is not delivered. Then everything held
/// is delivered, because whoever expands must wait for that one.
pub const MOST_RECORDS: usize = 1 << 17;

/// How many bytes these may have together.
pub const MOST_BYTES: usize = 64 << 20;
