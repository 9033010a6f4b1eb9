//! The limits of a conversation in bytes and time.

use std::time::{Duration, Instant};

/// The limits that apply to each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a request head (the request line and all fields), in bytes. Default 16 KiB.
    pub head_bytes: usize,
    /// Maximum time from the first byte of a request to the end of its header fields. Default 10 s.
    pub head: Duration,
    /// Maximum time that a client may be idle before it sends a request. Default 15 s.
    pub idle: Duration,
    /// Maximum time for the client to accept one piece of an answer ([`PIECE_BYTES`]), before
    /// [`Limits::least_rate`] also applies. Default 30 s.
    pub piece: Duration,
    /// Minimum average rate at which a client must accept an answer, in bytes per second; 0 disables it.
    /// Without this limit, a slow client could occupy capacity for days. Default 4,000.
    pub least_rate: u64,
    /// Time for which the server reads and ignores further bytes of the client after the last answer has
    /// arrived. Default 1 s.
    pub linger: Duration,
}

impl Limits {
    /// Returns the deadline by which the client must accept some of the data that is offered at `now`.
    /// `bytes` is the total number of bytes that the client was offered since `begun`.
    pub(crate) fn deadline(&self, now: Instant, begun: Instant, bytes: u64) -> Instant {
        let Self { piece, least_rate, .. } = *self;
        if least_rate == 0 {
            return now + piece;
        }
        let taken_in = Duration::from_secs_f64(bytes as f64 / least_rate as f64);
        (now + piece).min(begun + piece + taken_in)
    }
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

/// Maximum number of file bytes written in one step. Each piece ends at a multiple of this number in the
/// file.
pub const PIECE_BYTES: usize = 64 << 10;
/// Maximum number of bytes that are read from a client in one step.
pub const READ_BYTES: usize = 2 << 10;
/// Maximum number of bytes of a directory's page rendered at a time, without the title. A longer page is sent
/// in chunks.
pub const LISTING_BYTES: usize = 32 << 10;
/// Maximum number of header fields of a request.
pub(crate) const MOST_FIELDS: usize = 128;
