//! Splits a byte stream into request heads: the bytes up to the empty line, one head after the other. Bytes
//! that a client sends ahead (pipelining) stay for the next head.
//!
//! The buffer is bounded: it holds one head of maximum length and one read beyond it. Its memory is freed
//! between requests.

use crate::limits::READ_BYTES;

/// The bytes that a client has sent and that no request head has consumed yet.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    /// The received bytes. They begin with the request head that was returned last.
    bytes: Vec<u8>,
    /// The length of the request head that was returned last, in bytes; the next call removes this head.
    taken: usize,
    /// The number of bytes that were searched already and do not contain the end of a request head.
    searched: usize,
}

/// The reason why no more requests can be read from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoHead {
    /// The request head exceeds the maximum length.
    TooLong,
    /// The first byte cannot begin a method, so the stream is not HTTP; for example a TLS handshake.
    NoRequest,
}

impl Heads {
    /// Returns the next request head, including its empty line; `None` if more bytes are needed.
    ///
    /// # Errors
    /// If the head is longer than `most` bytes, or if its first byte shows that it is not a request.
    pub(crate) fn next(&mut self, most: usize) -> Result<Option<&[u8]>, NoHead> {
        self.drop_first(self.taken);
        self.taken = 0;
        self.drop_empty_lines();
        if self.bytes.first().is_some_and(|first| !is_token(*first)) {
            return Err(NoHead::NoRequest);
        }
        let Some(end) = end_of_head(&self.bytes, self.searched) else {
            self.searched = self.bytes.len();
            return if self.bytes.len() < most { Ok(None) } else { Err(NoHead::TooLong) };
        };
        if end > most {
            return Err(NoHead::TooLong);
        }
        self.taken = end;
        Ok(Some(&self.bytes[..end]))
    }

    /// Returns `true` if a request head has begun that was not returned yet.
    pub(crate) const fn has_more(&self) -> bool {
        self.bytes.len() > self.taken
    }

    /// Appends received bytes to the buffer, at most [`READ_BYTES`].
    pub(crate) fn received(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(READ_BYTES)]);
    }

    /// Drops all received bytes and frees the buffer's memory.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Drops empty lines before a request, which must be ignored (RFC 9112, section 2.2).
    fn drop_empty_lines(&mut self) {
        let is_end = |byte: &&u8| matches!(byte, b'\r' | b'\n');
        self.drop_first(self.bytes.iter().take_while(is_end).count());
    }

    fn drop_first(&mut self, bytes: usize) {
        self.bytes.drain(..bytes);
        if self.bytes.is_empty() {
            // A silent client takes no memory.
            self.bytes = Vec::new();
        }
        self.searched = self.searched.saturating_sub(bytes);
    }
}

/// Returns `true` if a byte may occur in a token, such as a method (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns the index after the empty line that ends a request head; `None` if no empty line has arrived.
/// Lines may end with LF alone. The first `searched` bytes were searched before.
fn end_of_head(bytes: &[u8], searched: usize) -> Option<usize> {
    let from = searched.saturating_sub(3);
    let at = |index: usize| match &bytes[index..] {
        [b'\n', b'\n', ..] => Some(index + 2),
        [b'\n', b'\r', b'\n', ..] => Some(index + 3),
        _ => None,
    };
    (from..bytes.len()).find_map(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all heads of a stream that arrives `at_once` bytes at a time, and `true` if one was too long.
    fn heads(mut stream: &[u8], at_once: usize) -> (Vec<Vec<u8>>, bool) {
        let mut heads = Heads::default();
        let mut found = Vec::new();
        loop {
            match heads.next(64) {
                Ok(Some(head)) => found.push(head.to_vec()),
                Ok(None) if stream.is_empty() => return (found, false),
                Ok(None) => {
                    let (now, later) = stream.split_at(stream.len().min(at_once).min(READ_BYTES));
                    heads.received(now);
                    stream = later;
                }
                Err(_) => return (found, true),
            }
        }
    }

    #[test]
    fn heads_are_the_same_however_they_arrive() {
        let stream =
            b"\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\n\n\r\n\r\nG / H\r\n\r\n";
        for at_once in [1, 2, 3, 7, 1_000] {
            let (found, is_too_long) = heads(stream, at_once);
            assert_eq!(found[0], b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "{at_once}");
            assert_eq!(found[1], b"GET /b HTTP/1.1\n\n");
            assert_eq!(found[2], b"G / H\r\n\r\n");
            assert!(found.len() == 3 && !is_too_long);
        }
    }

    #[test]
    fn a_head_that_is_too_long_is_not_read_to_its_end() {
        for at_once in [1, 1_000_000] {
            assert_eq!(heads(&[b'a'; 100_000], at_once), (Vec::new(), true));
        }
    }

    #[test]
    fn empty_lines_alone_are_no_head_and_take_no_memory() {
        assert_eq!(heads(&[b'\n'; 10_000], 5), (Vec::new(), false));
        let mut all = Heads::default();
        for _ in 0..100 {
            all.received(&[b'\n'; READ_BYTES]);
            assert!(matches!(all.next(64), Ok(None)) && !all.has_more());
            assert_eq!(all.bytes.capacity(), 0);
        }
    }
}
