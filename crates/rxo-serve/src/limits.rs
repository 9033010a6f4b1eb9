//! The bounds of a conversation: bytes and time.

use std::time::{Duration, Instant};

/// What one client may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest request head, in bytes: the request line and all fields. Default 16 KiB.
    pub head_bytes: usize,
    /// Time from the first byte of a request to the end of its fields. Default 10 s.
    pub head: Duration,
    /// Longest silence before a request. Default 15 s.
    pub idle: Duration,
    /// Time to take one piece of an answer ([`PIECE_BYTES`]), and the time before
    /// [`Limits::least_rate`] counts. Default 30 s.
    pub piece: Duration,
    /// What a client must take of an answer, in bytes a second from its first to its last byte; 0
    /// turns the bound off. Without it a slow client keeps its place for days. Default 4,000.
    pub least_rate: u64,
    /// Time after the last answer has arrived in which the client may still send. Default 1 s.
    pub linger: Duration,
}

impl Limits {
    /// When something must have been taken that is offered since `now`, if `bytes` are what a client may have taken since
    /// `begun`.
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

/// Most bytes of a file that one step writes. Pieces end at multiples of it in the file.
pub const PIECE_BYTES: usize = 64 << 10;
/// Most bytes that one step reads.
pub const READ_BYTES: usize = 2 << 10;
/// Most bytes of a directory's page that are rendered at a time, its title not counted. A longer page
/// is sent in chunks.
pub const LISTING_BYTES: usize = 32 << 10;
/// Most fields of a request.
pub(crate) const MOST_FIELDS: usize = 128;
