//! Unpacks captures that are compressed by gzip or zstd, on a separate thread.
//!
//! Both decoders are written in Rust, so that building needs no C compiler: `flate2` on `zlib-rs`,
//! and `ruzstd`, which unpacks captures at 1-2 GB/s, faster than the analysis.

mod gzip;
mod thread;
mod zstd;

use std::fmt;
use std::io::{self, Read};

/// The compression of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// The file consists of one or more gzip members (RFC 1952).
    Gzip,
    /// The file consists of one or more Zstandard frames, including skippable ones (RFC 8878).
    Zstd,
}

impl Compression {
    /// Returns the compression of a file that begins with `head`: its first four bytes, or all if it has fewer. If the
    /// file is truncated within its magic number, returns the only compression that is possible; `None` if it is not
    /// compressed.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        match *head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5] | [0x28, 0xb5, 0x2f] | [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// Returns a reader of the unpacked data of `packed`. After everything that could be unpacked, reading fails: with
/// `UnexpectedEof` if `packed` is truncated, with `InvalidData` if it is damaged, and with `Unsupported` if it is valid
/// but exceeds the limits.
///
/// # Errors
/// If no thread can be started.
pub(super) fn unpack(
    compression: Compression,
    packed: impl Read + Send + 'static,
) -> io::Result<impl Read> {
    thread::run(compression, move |output| match compression {
        Compression::Gzip => gzip::unpack(packed, output),
        Compression::Zstd => zstd::unpack(packed, output),
    })
}

/// Returns the error for compressed data that no program writes.
fn damaged(what: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

/// Returns the error for compressed data that is valid but not supported.
fn unsupported(what: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, what.to_string())
}
