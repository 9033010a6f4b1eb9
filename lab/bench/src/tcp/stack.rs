//! The interface of a contender: a TCP stack with its application, at one end of the link.

use rxo_frame::{Instant, SharedBytes};
use serde::Serialize;

use super::link::Port;

/// Most frames that a stack receives in one turn.
pub(crate) const TURN_FRAMES: usize = 64;
/// Send and receive buffer of a connection, in bytes.
pub(crate) const BUFFER_BYTES: usize = 256 * 1024;
/// Bytes that the application reads or writes at once.
pub(crate) const CALL_BYTES: usize = 64 * 1024;
/// Size of a cache line.
const LINE_BYTES: usize = 64;
/// Address of the stack that listens.
pub(crate) const SERVER: [u8; 4] = [10, 0, 0, 1];
pub(crate) const SERVER_PORT: u16 = 80;
/// Address of the stack that connects. Connection `n` uses port `FIRST_PORT + n`.
pub(crate) const CLIENT: [u8; 4] = [10, 0, 0, 2];
pub(crate) const FIRST_PORT: u16 = 10_000;

/// The role of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Listens, and reads everything, copying each byte once.
    Reads,
    /// Connects, and writes without pause.
    OpensAndWrites,
}

/// The configuration of a race, the same for every stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) role: Role,
    /// `true` if software computes and verifies TCP checksums; otherwise a device does.
    pub(crate) checksums: bool,
    /// `true` if every segment carries timestamps.
    pub(crate) timestamps: bool,
    pub(crate) connections: u16,
    pub(crate) reading: Reading,
    /// `true` if GSO frames cross the link whole.
    pub(crate) takes_large: bool,
}

/// The way in which the application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reading {
    /// Copies every byte into the application's memory.
    Copied,
    /// Reads one byte of each cache line, inside the stack's buffers.
    InPlace,
}

/// Reads `bytes` in place, as an application might.
#[inline]
pub(crate) fn look_at(bytes: &[u8]) {
    let seen = bytes.chunks(LINE_BYTES).fold(0, |seen, line| seen ^ line[0]);
    std::hint::black_box(seen);
}

/// Returns data of one call's length for an application that lends it, and its empty unsent rest.
pub(crate) fn lent() -> [SharedBytes; 2] {
    [SharedBytes::from(vec![0; CALL_BYTES]), SharedBytes::default()]
}

/// Returns the next data to lend; it restarts once all of `text` is sent.
#[inline]
pub(crate) fn next_lent([text, rest]: &mut [SharedBytes; 2]) -> &mut SharedBytes {
    if rest.is_empty() {
        rest.clone_from(text);
    }
    rest
}

/// A stack with its application.
pub(crate) trait Stack {
    /// Returns the stack's end of the link.
    fn port(&mut self) -> &mut Port;

    /// Processes received frames, lets the application read and write, and sends what is due. Only this is
    /// timed.
    fn turn(&mut self, now: Instant);

    /// Runs the timers of all connections, because nothing has moved for a while.
    fn idle(&mut self, now: Instant);

    /// Returns the bytes that the application has read so far.
    fn read_bytes(&self) -> u64;
}
