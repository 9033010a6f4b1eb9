//! A client that sends given data in pieces, and records what it receives.

use std::io::{self, ErrorKind, Read, Write};

use rxo_serve::PIECE_BYTES;

use super::LIMITS;

/// The behaviour of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Most bytes in one read; the next field is the limit of a write.
    read_bytes: usize,
    write_bytes: usize,
    /// `true` if every third call is interrupted.
    is_interrupted: bool,
    /// The client's action after all its data is sent.
    pub(super) end: End,
    /// Number of bytes that the client receives before it is gone.
    pub(super) takes_bytes: usize,
}

/// The end of a client's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client closes its half of the connection.
    Said,
    /// The client stays open without sending.
    Dawdles,
    /// The client resets the connection.
    Gone,
}

impl Manner {
    /// Returns the plain behaviour: everything at once, and an orderly end.
    pub(super) const fn plain() -> Self {
        Self {
            read_bytes: usize::MAX,
            write_bytes: usize::MAX,
            is_interrupted: false,
            end: End::Said,
            takes_bytes: MOST_HEARD,
        }
    }

    pub(super) fn of([read, write, end, takes]: [u8; 4]) -> Self {
        let or_all = |bytes: u8, unit: usize, all: usize| {
            if bytes == 0 { all } else { usize::from(bytes) * unit }
        };
        Self {
            read_bytes: or_all(read, 1, usize::MAX),
            write_bytes: or_all(write, 16, usize::MAX),
            is_interrupted: end & 4 != 0,
            end: [End::Said, End::Dawdles, End::Gone, End::Said][usize::from(end & 3)],
            takes_bytes: or_all(takes, 50, MOST_HEARD),
        }
    }
}

#[derive(Debug)]
pub(super) struct Script<'s> {
    says: &'s [u8],
    manner: Manner,
    calls: u32,
    /// Bytes read since the last response, without empty lines.
    unanswered_bytes: usize,
    pub(super) heard: Vec<u8>,
}

impl<'s> Script<'s> {
    pub(super) const fn new(says: &'s [u8], manner: Manner) -> Self {
        Self { says, manner, calls: 0, unanswered_bytes: 0, heard: Vec::new() }
    }

    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        let is_interrupted = self.manner.is_interrupted && self.calls.is_multiple_of(3);
        if is_interrupted { Err(ErrorKind::Interrupted.into()) } else { Ok(()) }
    }
}

impl Read for Script<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.call()?;
        if self.says.is_empty() {
            return match self.manner.end {
                End::Said => Ok(0),
                End::Dawdles => Err(ErrorKind::WouldBlock.into()),
                End::Gone => Err(ErrorKind::ConnectionReset.into()),
            };
        }
        let length = into.len().min(self.manner.read_bytes);
        let read = self.says.read(&mut into[..length])?;
        self.unanswered_bytes += into[..read].iter().filter(|byte| !b"\r\n".contains(byte)).count();
        assert!(self.unanswered_bytes <= LIMITS.head_bytes + MOST_AHEAD, "too much is read ahead");
        Ok(read)
    }
}

impl Write for Script<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call()?;
        assert!(bytes.len() <= PIECE_BYTES + MOST_HEAD, "{} bytes at once", bytes.len());
        self.unanswered_bytes = 0;
        let room = self.manner.takes_bytes.saturating_sub(self.heard.len());
        if room == 0 {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let length = bytes.len().min(self.manner.write_bytes).min(room);
        self.heard.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Capacity of a client: more than two pieces of a file. Enough for every response, and small enough for
/// thousands of runs.
const MOST_HEARD: usize = 4 * PIECE_BYTES;
/// Largest head of a response: some fields, and an escaped URL that is part of the request.
const MOST_HEAD: usize = 8 << 10;
/// Bytes that one read may return beyond a head.
const MOST_AHEAD: usize = 2 << 10;
