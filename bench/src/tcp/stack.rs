//! What is measured: a TCP stack with its application, at one end of the link.

use rxo_frame::Instant;
use serde::Serialize;

use super::link::Port;

/// Frames a stack gets in one turn at most.
pub(crate) const TURN_FRAMES: usize = 64;
/// Send and receive buffer of a connection, in bytes.
pub(crate) const BUFFER_BYTES: usize = 256 * 1024;
/// What the application reads or writes at once, in bytes.
pub(crate) const CALL_BYTES: usize = 64 * 1024;
/// A line of the cache.
const LINE_BYTES: usize = 64;
/// The stack that waits for connections, and where.
pub(crate) const SERVER: [u8; 4] = [10, 0, 0, 1];
pub(crate) const SERVER_PORT: u16 = 80;
/// The one that opens them; connection `n` from port `FIRST_PORT + n`.
pub(crate) const CLIENT: [u8; 4] = [10, 0, 0, 2];
pub(crate) const FIRST_PORT: u16 = 10_000;

/// What the application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Waits for connections and reads all that comes, each byte copied once.
    Reads,
    /// Opens the connection and writes without end.
    OpensAndWrites,
}

/// How everything is set, the same for every stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) role: Role,
    /// Whether TCP checksums are computed and verified in software; if not, a device does it.
    pub(crate) checksums: bool,
    /// Whether every segment carries timestamps.
    pub(crate) timestamps: bool,
    pub(crate) connections: u16,
    pub(crate) reading: Reading,
    /// Whether the link takes large sends as they are.
    pub(crate) takes_large: bool,
}

/// How the application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reading {
    /// It has every byte copied into its own memory.
    Copied,
    /// It looks at the bytes where the stack has them, once at each line.
    InPlace,
}

/// What an application does with bytes that it reads in place.
#[inline]
pub(crate) fn look_at(bytes: &[u8]) {
    let seen = bytes.chunks(LINE_BYTES).fold(0, |seen, line| seen ^ line[0]);
    std::hint::black_box(seen);
}

/// A stack and its application.
pub(crate) trait Stack {
    /// Its end of the link.
    fn port(&mut self) -> &mut Port;

    /// Takes what has arrived, lets the application read and write, sends what is to be sent. This
    /// alone is timed.
    fn turn(&mut self, now: Instant);

    /// Nothing has moved for long: runs the timers of all connections.
    fn idle(&mut self, now: Instant);

    /// Bytes that the application has read so far.
    fn read_bytes(&self) -> u64;
}
