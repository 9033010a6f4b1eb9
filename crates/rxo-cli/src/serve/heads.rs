//! Requests' heads out of a stream: the bytes up to the empty line, one after the other. What a
//! client sends ahead (pipelining) stays for the next.
//!
//! Bounded: a head is at most so long and takes at most so much time.

use std::io;
use std::time::Instant;

use super::client::{Client, read_until};
use super::limits::Limits;

/// What was read of a client and not used yet.
#[derive(Debug, Default)]
pub(super) struct Heads {
    bytes: Vec<u8>,
    /// So much of `bytes` is the head that was given out last.
    taken: usize,
}

/// Why there is no further head.
#[derive(Debug)]
pub(super) enum NoHead {
    /// The client ended, sent nothing for the time allowed, or is gone: no answer is due.
    Ended,
    /// It is longer than allowed.
    TooLong,
    /// It began and did not come to its end in time.
    TooSlow,
}

impl Heads {
    /// The next head, with its empty line.
    ///
    /// # Errors
    /// When there is none; then the conversation is over.
    pub(super) fn next(
        &mut self,
        client: &mut impl Client,
        limits: &Limits,
    ) -> Result<&[u8], NoHead> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        let mut deadline = Instant::now() + limits.idle;
        let (mut searched, mut has_begun) = (0, false);
        loop {
            self.drop_empty_lines();
            if !has_begun && !self.bytes.is_empty() {
                // Once: who sends empty lines only is not waited for any longer than who is silent.
                has_begun = true;
                deadline = Instant::now() + limits.head;
            }
            if let Some(end) = end_of_head(&self.bytes, searched) {
                self.taken = end;
                return if end <= limits.head_bytes {
                    Ok(&self.bytes[..end])
                } else {
                    Err(NoHead::TooLong)
                };
            }
            if self.bytes.len() >= limits.head_bytes {
                return Err(NoHead::TooLong);
            }
            searched = self.bytes.len();
            self.fill(client, deadline)?;
        }
    }

    /// Whether the client has sent more than the head that was given out.
    pub(super) fn has_more(&self) -> bool {
        self.bytes.len() > self.taken
    }

    /// They are to be ignored before a request (RFC 9112 section 2.2).
    fn drop_empty_lines(&mut self) {
        let empty = self.bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.bytes.drain(..empty);
    }

    fn fill(&mut self, client: &mut impl Client, deadline: Instant) -> Result<(), NoHead> {
        let used = self.bytes.len();
        self.bytes.resize(used + READ_BYTES, 0);
        let read = read_until(client, &mut self.bytes[used..], deadline);
        self.bytes.truncate(used + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(NoHead::Ended),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(if used == 0 { NoHead::Ended } else { NoHead::TooSlow })
            }
            Err(_) => Err(NoHead::Ended),
        }
    }
}

/// Where the head ends, behind its empty line; lines may end in LF alone. Everything before
/// `searched` was searched already.
fn end_of_head(bytes: &[u8], searched: usize) -> Option<usize> {
    let from = searched.saturating_sub(3);
    let at = |index: usize| match &bytes[index..] {
        [b'\n', b'\n', ..] => Some(index + 2),
        [b'\n', b'\r', b'\n', ..] => Some(index + 3),
        _ => None,
    };
    (from..bytes.len()).find_map(at)
}

const READ_BYTES: usize = 2 << 10;

#[cfg(test)]
mod tests {
    use super::super::pipe::Pipe;
    use super::*;

    fn limits() -> Limits {
        Limits { head_bytes: 64, ..Limits::default() }
    }

    /// All heads of a stream that comes `at_once` bytes at a time.
    fn heads(stream: &[u8], at_once: usize) -> (Vec<Vec<u8>>, NoHead) {
        let mut client = Pipe::sending(stream, at_once);
        let mut heads = Heads::default();
        let mut found = Vec::new();
        loop {
            match heads.next(&mut client, &limits()) {
                Ok(head) => found.push(head.to_vec()),
                Err(none) => return (found, none),
            }
        }
    }

    #[test]
    fn heads_are_the_same_however_they_arrive() {
        let stream =
            b"\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\n\n\r\n\r\nG / H\r\n\r\n";
        for at_once in [1, 2, 3, 7, 1_000] {
            let (found, none) = heads(stream, at_once);
            assert_eq!(found[0], b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "{at_once}");
            assert_eq!(found[1], b"GET /b HTTP/1.1\n\n");
            assert_eq!(found[2], b"G / H\r\n\r\n");
            assert!(found.len() == 3 && matches!(none, NoHead::Ended));
        }
    }

    #[test]
    fn what_is_too_long_is_not_read_to_its_end() {
        for at_once in [1, 1_000_000] {
            let (found, none) = heads(&[b'a'; 100_000], at_once);
            assert!(found.is_empty() && matches!(none, NoHead::TooLong));
        }
    }

    #[test]
    fn only_empty_lines_are_nothing() {
        let (found, none) = heads(&[b'\n'; 10_000], 5);
        assert!(found.is_empty() && matches!(none, NoHead::Ended));
    }
}
