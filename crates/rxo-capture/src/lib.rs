//! Capture files: pcap and pcapng, read as a stream and written.
//!
//! [`Capture`] reads: plain, gzip or zstd, recognised by what the file begins with, never by its
//! name. [`CaptureWriter`] writes pcapng. Between them stand a [`Record`] (one packet), the
//! [`Interface`] it was seen on, and its [`LinkType`], which finds the IP packet in it.
//!
//! Memory stays bounded whatever the file holds: it is read in chunks, and records share the chunk
//! they came in ([`SharedBytes`]), so that several readers of one record copy nothing. A chunk is
//! filled anew when no record of it is left. What the file may ask for is limited: [`limits`].
//!
//! ```text
//!  file, pipe -> input: magic -> [thread: gzip, zstd] -> stream: chunks -> pcap | pcapng -> Record
//! ```
//!
//! Both formats are read here and not by a crate, for reasons that the well-kept ones gave:
//! `pcap-file` yields the error of a bad record for ever, and no place. `pcap-parser` 0.17 collects
//! the options of a block into a vector of any size, refuses every resolution that is a power of
//! two, reads the time offset of big-endian sections in the wrong order, does not know the obsolete
//! packet block, and its errors have no offsets. It is the second opinion in the tests instead.
//! `pcap-file` writes well, but wants each packet in one piece; an aggregate is many.

mod bytes;
mod compression;
mod error;
mod foreign;
mod input;
pub mod limits;
mod link;
mod options;
mod outline;
mod pcap;
mod pcapng;
mod reader;
mod record;
mod stream;
mod ticks;
mod writer;

pub use bytes::SharedBytes;
pub use compression::Compression;
pub use error::{CaptureError, Fault};
pub use link::{LinkType, Network};
pub use options::{OptionIter, Options, put_option};
pub use outline::{Described, Part};
pub use reader::{Capture, Format, Position};
pub use record::{Direction, Interface, Record};
pub use ticks::Clock;
pub use writer::{CaptureWriter, Custom, Packet, Verbatim, WriteError};
