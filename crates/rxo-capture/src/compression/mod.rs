//! Captures in gzip and zstd, unpacked on a thread of their own.
//!
//! Both decoders are Rust, so that building needs no C compiler: `flate2` on `zlib-rs`, and
//! `ruzstd`, which unpacks captures at 1-2 GB/s, more than is analysed meanwhile.

mod gzip;
mod thread;
mod zstd;

use std::fmt;
use std::io::{self, Read};

/// How a capture file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// One or more gzip members (RFC 1952).
    Gzip,
    /// One or more Zstandard frames, skippable ones among them (RFC 8878).
    Zstd,
}

impl Compression {
    /// What a file is compressed with that begins with `head`, its first four bytes or all it has:
    /// of a file that is cut within its magic number, the one that can only be meant.
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

/// What is in `packed`. Reading fails with `UnexpectedEof` where `packed` ends too early, with
/// `InvalidData` where it is damaged, and with `Unsupported` where it is sound and too much, after
/// all that could be unpacked.
///
/// # Errors
/// When no thread can be started.
pub(super) fn unpack(
    compression: Compression,
    packed: impl Read + Send + 'static,
) -> io::Result<impl Read> {
    thread::run(compression, move |output| match compression {
        Compression::Gzip => gzip::unpack(packed, output),
        Compression::Zstd => zstd::unpack(packed, output),
    })
}

/// Bytes that no packer writes.
fn damaged(what: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

/// What a packer may write, and is not unpacked here.
fn unsupported(what: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, what.to_string())
}
