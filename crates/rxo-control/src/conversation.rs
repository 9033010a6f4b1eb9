//! The conversation with one client: requests in, answers out, and a deadline after which the client is
//! dropped.
//!
//! A request ends with its line or, for HTTP, with the empty line after its head. This module is sans-IO: the
//! server reads, writes and passes the time. A client has one request at a time, and further bytes wait in its
//! socket. So the memory per client is one request and one answer.

use std::time::Instant;

use crate::{CLIENT_TIMEOUT, MOST_REQUEST_BYTES};

/// The rule that divides a client's bytes into requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Each request is a line. The last line needs no line end.
    Lines,
    /// The only request is an HTTP head, which ends with an empty line. Bytes after the empty line are not
    /// read.
    Head,
}

impl Framing {
    /// Finds the first request in `input`. Returns the length of the request and the length of its
    /// terminator, in bytes; `None` if the request is not complete.
    fn find(self, input: &[u8]) -> Option<(usize, usize)> {
        let line_end =
            |from: usize| input[from..].iter().position(|b| *b == b'\n').map(|n| from + n);
        let first = line_end(0)?;
        if self == Self::Lines {
            return Some((first, 1));
        }
        let mut end = first;
        loop {
            match &input[end + 1..] {
                [b'\n', ..] => return Some((end + 2, 0)),
                [b'\r', b'\n', ..] => return Some((end + 3, 0)),
                _ => end = line_end(end + 1)?,
            }
        }
    }
}

/// The state of one client: its pending request, its answer and its deadline.
#[derive(Debug)]
pub(crate) struct Conversation {
    framing: Framing,
    input: Vec<u8>,
    output: Vec<u8>,
    /// The number of bytes of the answer that were written so far.
    written: usize,
    /// The time at which the client is dropped unless it has completed its request or accepted its answer.
    due: Instant,
    /// `true` if the client sends no more bytes.
    has_ended: bool,
}

/// A request as a client has sent it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A complete request, without its line end.
    Whole(Vec<u8>),
    /// A request that is longer than the limit. No further bytes of the client are read.
    TooLong,
}

impl Conversation {
    pub(crate) fn new(framing: Framing, now: Instant) -> Self {
        let due = deadline(now);
        Self { framing, input: Vec::new(), output: Vec::new(), written: 0, due, has_ended: false }
    }

    /// Returns the number of bytes that may be read from the client now; 0 while an answer is being written.
    pub(crate) fn room(&self) -> usize {
        let is_open = self.output.is_empty() && !self.has_ended;
        if is_open { MOST_REQUEST_BYTES - self.input.len() } else { 0 }
    }

    /// Returns `true` if the client must send the next bytes. `false` means that the server must first answer a
    /// request or write an answer.
    pub(crate) fn is_to_send(&self) -> bool {
        self.output.is_empty() && !self.has_ended && self.framing.find(&self.input).is_none()
    }

    /// Appends bytes that were read from the client, at most [`Conversation::room`]. An empty slice means that
    /// the client sends no more bytes.
    pub(crate) fn on_read(&mut self, bytes: &[u8]) {
        self.has_ended |= bytes.is_empty();
        self.input.extend_from_slice(bytes);
    }

    /// Removes and returns the next request, if it is complete and the previous one was answered; otherwise
    /// returns `None`.
    pub(crate) fn next_request(&mut self) -> Option<Asked> {
        if !self.output.is_empty() {
            return None;
        }
        if let Some((bytes, end)) = self.framing.find(&self.input) {
            let rest = self.input.split_off(bytes + end);
            let mut request = std::mem::replace(&mut self.input, rest);
            request.truncate(bytes);
            if self.framing == Framing::Head {
                (self.has_ended, self.input) = (true, Vec::new());
            }
            return Some(Asked::Whole(request));
        }
        if self.input.len() >= MOST_REQUEST_BYTES {
            (self.has_ended, self.input) = (true, Vec::new());
            return Some(Asked::TooLong);
        }
        if !self.has_ended || self.input.is_empty() {
            return None;
        }
        let last = std::mem::take(&mut self.input);
        (self.framing == Framing::Lines).then_some(Asked::Whole(last))
    }

    /// Stores the answer to the last request, and restarts the deadline: the client must accept the answer in time.
    pub(crate) fn answer(&mut self, bytes: Vec<u8>, now: Instant) {
        (self.output, self.written, self.due) = (bytes, 0, deadline(now));
    }

    /// Returns the part of the answer that was not written yet.
    pub(crate) fn to_write(&self) -> &[u8] {
        &self.output[self.written..]
    }

    /// Records that `bytes` bytes of the answer were written. Once the answer is complete, restarts the deadline for
    /// the next request.
    pub(crate) fn on_written(&mut self, bytes: usize, now: Instant) {
        self.written += bytes;
        if self.written == self.output.len() {
            (self.output, self.written, self.due) = (Vec::new(), 0, deadline(now));
        }
    }

    /// Returns `true` if the conversation has ended at time `now`, or if the client was too slow.
    pub(crate) fn has_ended(&self, now: Instant) -> bool {
        let is_done = self.has_ended && self.output.is_empty() && self.input.is_empty();
        is_done || now >= self.due
    }

    /// Returns the time after which the client is dropped.
    pub(crate) const fn due(&self) -> Instant {
        self.due
    }
}

fn deadline(now: Instant) -> Instant {
    now + CLIENT_TIMEOUT
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn whole(text: &str) -> Option<Asked> {
        Some(Asked::Whole(text.as_bytes().to_vec()))
    }

    #[test]
    fn a_request_is_answered_before_the_next_is_read() {
        let now = Instant::now();
        let mut client = Conversation::new(Framing::Lines, now);
        client.on_read(b"on");
        assert_eq!(client.next_request(), None);
        client.on_read(b"e\ntwo\n");
        assert_eq!(client.next_request(), whole("one"));
        assert!(!client.is_to_send(), "the second line is there");
        client.answer(b"1\n".to_vec(), now);
        assert_eq!((client.room(), client.next_request()), (0, None));
        assert_eq!(client.to_write(), b"1\n");
        client.on_written(1, now);
        assert_eq!(client.to_write(), b"\n");
        client.on_written(1, now);
        assert_eq!(client.next_request(), whole("two"));
        assert!(!client.has_ended(now));
    }

    #[test]
    fn the_last_line_needs_no_end_and_is_answered() {
        let now = Instant::now();
        let mut client = Conversation::new(Framing::Lines, now);
        client.on_read(b"last");
        client.on_read(b"");
        assert!(!client.has_ended(now));
        assert_eq!(client.next_request(), whole("last"));
        client.answer(b"1\n".to_vec(), now);
        assert!(!client.has_ended(now));
        client.on_written(2, now);
        assert!(client.has_ended(now));
    }

    #[test]
    fn a_line_without_end_is_refused_and_is_the_last() {
        let now = Instant::now();
        let mut client = Conversation::new(Framing::Lines, now);
        client.on_read(&vec![b'x'; client.room()]);
        assert_eq!(client.room(), 0);
        assert_eq!(client.next_request(), Some(Asked::TooLong));
        client.answer(b"no\n".to_vec(), now);
        client.on_written(3, now);
        assert!(client.has_ended(now));
    }

    #[test]
    fn who_sends_or_takes_nothing_in_time_is_dropped() {
        let now = Instant::now();
        let mut client = Conversation::new(Framing::Lines, now);
        let later = now + CLIENT_TIMEOUT - Duration::from_millis(1);
        client.on_read(b"slo");
        assert!(!client.has_ended(later) && client.has_ended(now + CLIENT_TIMEOUT));
        client.on_read(b"w\n");
        _ = client.next_request();
        client.answer(b"1\n".to_vec(), later);
        assert!(!client.has_ended(now + CLIENT_TIMEOUT));
        client.on_written(1, later);
        assert!(client.has_ended(later + CLIENT_TIMEOUT), "half an answer is not taken");
    }

    #[test]
    fn a_head_of_http_is_answered_once_wherever_it_is_divided() {
        let now = Instant::now();
        for head in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.0\n\n", "\n\r\n"] {
            for at in 0..head.len() {
                let mut client = Conversation::new(Framing::Head, now);
                client.on_read(&head.as_bytes()[..at]);
                if at > 0 {
                    assert_eq!(client.next_request(), None, "{head:?} at {at}");
                    assert!(client.is_to_send());
                }
                client.on_read(&[&head.as_bytes()[at..], b"GET /next"].concat());
                assert_eq!(client.next_request(), whole(head));
                client.answer(b"1".to_vec(), now);
                client.on_written(1, now);
                assert!(client.has_ended(now) && client.next_request().is_none());
            }
        }
    }

    #[test]
    fn half_a_head_is_no_request() {
        let now = Instant::now();
        let mut client = Conversation::new(Framing::Head, now);
        client.on_read(b"GET / HTTP/1.1\r\n");
        client.on_read(b"");
        assert_eq!(client.next_request(), None);
        assert!(client.has_ended(now));
    }
}
