//! Implements reading and writing of data.

use std::io::{self, Read, Write};

use super::socket::{Socket, Stream};
use super::{Answer, Fd, Machine, Outcome, errno};
use crate::abi::{Errno, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK, MSG_WAITALL};

impl Machine {
    /// Implements read(2) and the other receiving calls.
    pub fn read(&mut self, fd: Fd, bytes: usize, flags: i32) -> Outcome {
        if flags & !(MSG_PEEK | MSG_DONTWAIT | MSG_WAITALL | MSG_NOSIGNAL) != 0 {
            return Some(Err(Errno::EOPNOTSUPP));
        }
        let (waits, says_rest) = match self.socket(fd) {
            Ok(Socket { options, .. }) => {
                (!options.is_nonblocking && flags & MSG_DONTWAIT == 0, options.says_rest)
            }
            Err(error) => return Some(Err(error)),
        };
        let stream = match self.stream(fd) {
            Ok(stream) => stream,
            Err(error) => return Some(Err(error)),
        };
        let wanted = if flags & MSG_WAITALL != 0 { bytes } else { 1 };
        if waits && wanted > 1 && !stream.has_all(wanted) {
            return None;
        }
        match stream.read(bytes, flags & MSG_PEEK != 0) {
            Err(Errno::EAGAIN) if waits => None,
            read => {
                let rest = says_rest.then(|| stream.rest());
                self.turn();
                Some(read.map(|answer| Answer { rest, ..answer }))
            }
        }
    }

    /// Implements write(2) and the other sending calls. `written` counts the bytes of earlier attempts of
    /// this call. The host sends between partial writes, as its worker would on another core.
    pub fn write(&mut self, fd: Fd, data: &[u8], flags: i32, written: &mut usize) -> Outcome {
        if flags & !(MSG_DONTWAIT | MSG_NOSIGNAL) != 0 {
            return Some(Err(Errno::EOPNOTSUPP));
        }
        let waits = match self.socket(fd) {
            Ok(Socket { options, .. }) => !options.is_nonblocking && flags & MSG_DONTWAIT == 0,
            Err(error) => return Some(Err(error)),
        };
        loop {
            let stream = match self.stream(fd) {
                Ok(stream) => stream,
                Err(error) => return Some(Err(error)),
            };
            let result = stream.write(data.get(*written..).unwrap_or_default());
            self.turn();
            match result {
                Ok(taken) => *written += taken,
                Err(Errno::EAGAIN) if waits => return None,
                Err(error) if *written == 0 => return Some(Err(error)),
                Err(_) => return Some(Ok(Answer::of(*written as i64))),
            }
            if *written >= data.len() {
                return Some(Ok(Answer::of(*written as i64)));
            }
        }
    }
}

impl Stream {
    fn read(&mut self, bytes: usize, peeks: bool) -> Result<Answer, Errno> {
        let mut data = vec![0; bytes];
        let read = if peeks { self.tcp.peek(&mut data) } else { (&self.tcp).read(&mut data) };
        let read = self.once(read, Ok(0))?;
        data.truncate(read);
        Ok(Answer { value: read as i64, data, ..Answer::default() })
    }

    fn write(&mut self, data: &[u8]) -> Result<usize, Errno> {
        let written = (&self.tcp).write(data);
        self.once(written, Err(Errno::EPIPE))
    }

    /// Reports a failure once, as Linux does; later calls return `then`.
    fn once(
        &mut self,
        result: io::Result<usize>,
        then: Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        match result.map_err(|error| errno(&error)) {
            Err(error @ (Errno::EAGAIN | Errno::EPIPE)) => Err(error),
            Err(_) => self.take_error().map_or(then, Err),
            done => done,
        }
    }

    /// Returns `true` if `bytes` bytes can be read, or no more data will arrive.
    fn has_all(&self, bytes: usize) -> bool {
        self.unread(bytes) >= bytes || self.has_ended()
    }

    /// Returns the number of bytes that can be read, up to `most`.
    pub(super) fn unread(&self, most: usize) -> usize {
        self.tcp.peek(&mut vec![0; most]).unwrap_or(0)
    }

    /// Returns `true` if no more data arrives: the peer has closed its direction, or the connection is over.
    pub(super) fn has_ended(&self) -> bool {
        let is_over = self.end().is_some();
        is_over || self.is_read_shut || self.is_peer_done()
    }

    /// Returns the value for TCP_CM_INQ: the number of unread bytes; 1 if only the end of the stream is left.
    fn rest(&self) -> i32 {
        match self.unread(MOST_UNREAD_BYTES) {
            0 => self.is_peer_done().into(),
            bytes => i32::try_from(bytes).unwrap_or(i32::MAX),
        }
    }

    /// Returns `true` if the peer has closed its direction and everything has been read.
    fn is_peer_done(&self) -> bool {
        matches!(self.tcp.peek(&mut [0]), Ok(0))
    }
}

/// Largest receive buffer, in bytes.
pub(super) const MOST_UNREAD_BYTES: usize = 16 << 20;
