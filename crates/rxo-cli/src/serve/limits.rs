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
    /// For each [`PIECE_BYTES`] of an answer: with 30 s a client takes 2 KiB a second at least.
    pub(super) piece: Duration,
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
            linger: Duration::from_secs(1),
        }
    }
}

/// Of a file this much is read, then written, at a time: all that an answer takes of memory.
pub(super) const PIECE_BYTES: usize = 64 << 10;
/// More fields than this no client needs.
pub(super) const MOST_FIELDS: usize = 64;
