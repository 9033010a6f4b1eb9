//! Unpacks compressed captures on a separate thread.
//!
//! All decoders are written in Rust, so that building needs no C compiler: `flate2` on `zlib-rs`, and `ruzstd`,
//! which unpacks captures at 1-2 GB/s, faster than the analysis. The decoders for bzip2, lz4 and xz are
//! features of the crate.

#[cfg(feature = "bzip2")]
mod bzip2;
mod gzip;
#[cfg(feature = "lz4")]
mod lz4;
mod thread;
mod watched;
#[cfg(feature = "xz")]
mod xz;
mod zstd;

use std::fmt;
use std::io::{self, Read};

/// The compression of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// The file consists of one or more bzip2 streams. Needs the feature `bzip2`.
    Bzip2,
    /// The file consists of one or more gzip members (RFC 1952).
    Gzip,
    /// The file consists of one or more LZ4 frames, including skippable ones. Needs the feature `lz4`.
    Lz4,
    /// The file consists of one or more xz streams. Needs the feature `xz`.
    Xz,
    /// The file consists of one or more Zstandard frames, including skippable ones (RFC 8878).
    Zstd,
}

impl Compression {
    /// Returns the compression of a file that begins with `head`: its first four bytes, or the whole file if
    /// it is shorter. `None` if the file is not compressed. If the file ends within its magic number, returns
    /// the only compression that is possible.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        match *head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [b'B', b'Z'] | [b'B', b'Z', b'h'] | [b'B', b'Z', b'h', b'1'..=b'9'] => {
                Some(Self::Bzip2)
            }
            [0x04, 0x22] | [0x04, 0x22, 0x4d] | [0x04, 0x22, 0x4d, 0x18] => Some(Self::Lz4),
            [0xfd, b'7'] | [0xfd, b'7', b'z'] | [0xfd, b'7', b'z', b'X'] => Some(Self::Xz),
            [0x28, 0xb5] | [0x28, 0xb5, 0x2f] | [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bzip2 => "bzip2",
            Self::Gzip => "gzip",
            Self::Lz4 => "lz4",
            Self::Xz => "xz",
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
        #[cfg(feature = "bzip2")]
        Compression::Bzip2 => bzip2::unpack(packed, output),
        Compression::Gzip => gzip::unpack(packed, output),
        #[cfg(feature = "lz4")]
        Compression::Lz4 => lz4::unpack(packed, output),
        #[cfg(feature = "xz")]
        Compression::Xz => xz::unpack(packed, output),
        Compression::Zstd => zstd::unpack(packed, output),
        #[cfg(not(all(feature = "bzip2", feature = "lz4", feature = "xz")))]
        other => Err(unsupported(format_args!(
            "this build leaves {other} out (a feature of rxo-capture); unpack it first: {other} -d"
        ))),
    })
}

/// Returns the error for compressed data that is invalid.
fn damaged(what: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

/// Returns the error for compressed data that is valid but not supported.
fn unsupported(what: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, what.to_string())
}
