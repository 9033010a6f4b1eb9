//! What one client may take: bytes and time.

use std::time::Duration;

/// The bounds of a conversation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// A request's line and fields together.
    pub(super) head_bytes: usize,
    /// From the first byte of a request to the end of its fields.
    pub(super) head: Duration,
    /// Between two requests.
    pub(super) idle: Duration,
    /// For each [`PIECE_BYTES`] of an answer, and before the least rate counts.
    pub(super) piece: Duration,
    /// What a client must take of an answer, in bytes a second from its first to its last byte, after
    /// [`Limits::piece`]; 0 is nothing. One that takes less does not keep a place for days.
    pub(super) least_rate: u64,
    /// After the last answer, for what the client still sends.
    pub(super) linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 16 << 10,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(15),
            piece: Duration::from_secs(30),
            least_rate: 4_000,
            linger: Duration::from_secs(1),
        }
    }
}

/// Of a file this much is read, then written, at a time: all that an answer takes of memory.
pub(super) const PIECE_BYTES: usize = 64 << 10;
/// Of a page of names so much is made at a time, and so much is kept of the names for it.
pub(super) const LISTING_BYTES: usize = 32 << 10;
/// More fields than this no client needs.
pub(super) const MOST_FIELDS: usize = 64;
