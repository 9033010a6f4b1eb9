//! Limits for the lengths that a capture file may claim.
//!
//! A damaged file may state any length. Lengths above these limits are reported as damage, so that no file
//! makes the reader allocate much more memory than the file has bytes.

/// The size of a chunk, in bytes. All records that are read into a chunk share that chunk.
pub const CHUNK_BYTES: usize = 128 * 1024;

/// The maximum length of a record or block that is kept, in bytes. Skipped blocks may be longer.
pub const RECORD_BYTES: usize = 16 * 1024 * 1024;

/// The maximum length in bytes of a packet in a pcap file whose snap length is not larger: libpcap's limit. A
/// file with a larger snap length may contain packets of that length, up to [`RECORD_BYTES`].
pub const PACKET_BYTES: u32 = 256 * 1024;

/// The maximum number of interfaces in all sections of a file.
pub const INTERFACES: usize = 65_536;

/// The maximum length of an interface name that is kept, in bytes; longer names are truncated.
pub const NAME_BYTES: usize = 256;

/// The maximum size of a zstd window in bytes, which bounds the memory for unpacking. The program `zstd` uses
/// no larger window unless asked to (`--ultra`, `--long`).
pub const WINDOW_BYTES: u64 = 128 * 1024 * 1024;

/// The maximum number of sections and interfaces whose description is kept.
pub const DESCRIBED: usize = 2 * INTERFACES;

/// The maximum number of bytes in the options of all kept sections and interfaces together.
pub const DESCRIBED_BYTES: usize = 4 * 1024 * 1024;
