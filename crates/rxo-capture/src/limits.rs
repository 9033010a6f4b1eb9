//! The most that a capture file may ask for.
//!
//! A length in a file is a claim. What is above these limits is refused as damaged, so that no
//! file makes the reader hold much more than what it was given.

/// How much is read at once, in bytes, and shared by the records that lie in it.
pub const CHUNK_BYTES: usize = 128 * 1024;

/// The longest record or block that is kept, in bytes. Blocks that are skipped may be longer.
pub const RECORD_BYTES: usize = 16 * 1024 * 1024;

/// The longest packet that any pcap file may hold, in bytes, whatever its snap length says: what
/// libpcap allows. A file with a longer snap length may hold packets of that length, up to
/// [`RECORD_BYTES`].
pub const PACKET_BYTES: u32 = 256 * 1024;

/// How many interfaces all sections of a file may describe.
pub const INTERFACES: usize = 65_536;

/// The longest interface name that is kept, in bytes; a longer one is cut.
pub const NAME_BYTES: usize = 256;

/// The largest zstd window, in bytes, and so the most that decompression needs. `zstd` itself asks
/// for no more unless told to (`--ultra`, `--long`).
pub const WINDOW_BYTES: u64 = 128 * 1024 * 1024;

/// How many sections and interfaces are kept to be described again.
pub const DESCRIBED: usize = 2 * INTERFACES;

/// How many bytes the options of those may have together.
pub const DESCRIBED_BYTES: usize = 4 * 1024 * 1024;
