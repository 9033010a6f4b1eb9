//! Capture files: streaming readers for pcap and pcapng, and writers.
//!
//! [`Capture`] reads files, plain or compressed (gzip, zstd, xz, lz4, bzip2). It recognizes them by their first
//! bytes, never by their name. [`CaptureWriter`] writes pcapng. Readers and writers share three types: a
//! [`Record`] is one packet, an [`Interface`] is the interface on which the packet was captured, and a
//! [`LinkType`] locates the IP packet in the record. [`Batches`] reads until a flag is set.
//!
//! A file that is not compressed can be cut into parts ([`Capture::cut`]), which are read on different machines.
//!
//! Memory is bounded whatever the file contains. A file is read in chunks, and each record shares the chunk
//! that it was read into ([`SharedBytes`]), so several readers of one record copy nothing. A chunk is reused
//! when all its records have been dropped. [`limits`] bounds the lengths that a file may claim.
//!
//! ```text
//!  file, pipe -> input: magic -> [thread: decompression] -> stream: chunks -> pcap | pcapng -> Record
//! ```
//!
//! Both formats are parsed here rather than by a crate, because the maintained crates have gaps. `pcap-file`
//! returns the error of a bad record on every further call, and without a position. `pcap-parser` 0.17 collects
//! the options of a block into a vector of any size, refuses every resolution that is a power of two, reads the
//! time offset of big-endian sections in the wrong order, does not know the obsolete packet block, and gives no
//! offsets in its errors. The tests compare the parsers of this crate with `pcap-parser`. `pcap-file` writes
//! well, but needs each packet in one piece, whereas an aggregate consists of many pieces.
//!
//! # Examples
//! ```
//! use std::io::Cursor;
//!
//! use rxo_capture::{Capture, CaptureWriter, Interface, LinkType, Packet};
//! use rxo_frame::Instant;
//!
//! let mut writer = CaptureWriter::new(Vec::new(), "an example")?;
//! let ethernet = Interface { link: LinkType::ETHERNET, snap_bytes: None, name: None };
//! let interface = writer.add_interface(&ethernet)?;
//! writer.write(&Packet {
//!     interface,
//!     at: Instant::from_micros(5),
//!     original_bytes: 60,
//!     pieces: &[&[1; 20], &[2; 40]],
//!     direction: None,
//!     comments: &[],
//!     custom: &[],
//! })?;
//! let file = writer.finish()?;
//!
//! let mut capture = Capture::from_reader("in memory", Box::new(Cursor::new(file)))?;
//! let mut records = Vec::new();
//! assert_eq!(capture.read_batch(&mut records, 64)?, 1);
//! assert_eq!(records[0].at, Instant::from_micros(5));
//! assert_eq!(records[0].bytes.as_ref(), [vec![1; 20], vec![2; 40]].concat());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batches;
mod bytes;
mod compression;
mod cut;
mod direction;
mod error;
#[cfg(feature = "filter")]
mod filter;
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
mod standard;
mod stream;
mod ticks;
mod writer;

pub use batches::{Batches, Step};
pub use bytes::SharedBytes;
pub use compression::Compression;
pub use direction::Direction;
pub use error::{CaptureError, Fault};
#[cfg(feature = "filter")]
pub use filter::{Filter, FilterError};
pub use link::{LinkType, Network};
pub use options::{OptionIter, Options, put_option};
pub use outline::{Described, Part};
pub use reader::{Capture, Format, Position};
pub use record::{Interface, Record};
pub use ticks::Clock;
pub use writer::{CaptureWriter, Custom, Packet, Verbatim, WriteError};
