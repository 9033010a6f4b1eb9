//! Capture files: pcap and pcapng, read as a stream and written.
//!
//! Memory stays bounded whatever the file's size: a file is read in chunks, and records share the
//! chunk they came in ([`SharedBytes`]), so that several readers of one record copy nothing.

mod bytes;
mod link;
mod record;

pub use bytes::SharedBytes;
pub use link::LinkType;
pub use record::{Interface, Record};
