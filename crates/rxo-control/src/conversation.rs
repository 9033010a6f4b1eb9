//! One client: lines in, answers out, and when it must be dropped.
//!
//! Sans-IO: its owner reads, writes and has the clock. A client has one request at a time; what it sends beyond that
//! waits in its socket. So it holds one line and one answer at most.

use std::time::Instant;

use crate::{MOST_REQUEST_BYTES, PATIENCE};

/// A client.
#[derive(Debug)]
pub(crate) struct Conversation {
    input: Vec<u8>,
    output: Vec<u8>,
    /// How much of the output is written.
    written: usize,
    /// When it is dropped, unless it has sent or taken what is due.
    due: Instant,
    /// Whether it will send no more.
    has_ended: bool,
}

/// What a client has sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole line, without its end.
    Whole(Vec<u8>),
    /// More than a line may have. Nothing more is read.
    TooLong,
}

impl Conversation {
    pub(crate) fn new(now: Instant) -> Self {
        let due = deadline(now);
        Self { input: Vec::new(), output: Vec::new(), written: 0, due, has_ended: false }
    }

    /// How many bytes may be read now; 0 while an answer is to be written.
    pub(crate) fn room(&self) -> usize {
        let is_open = self.output.is_empty() && !self.has_ended;
        if is_open { MOST_REQUEST_BYTES - self.input.len() } else { 0 }
    }

    /// Whether it is the client's turn to send. Otherwise there is something to answer or to write.
    pub(crate) fn is_to_send(&self) -> bool {
        self.output.is_empty() && !self.has_ended && !self.input.contains(&b'\n')
    }

    /// Takes what was read, at most [`Conversation::room`] bytes. None say that the client sends no more.
    pub(crate) fn on_read(&mut self, bytes: &[u8]) {
        self.has_ended |= bytes.is_empty();
        self.input.extend_from_slice(bytes);
    }

    /// The next line, if it is there and the last one is answered. The last line of a client needs no end.
    pub(crate) fn next_line(&mut self) -> Option<Line> {
        if !self.output.is_empty() {
            return None;
        }
        if let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
            let rest = self.input.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.input, rest);
            line.truncate(end);
            return Some(Line::Whole(line));
        }
        if self.input.len() >= MOST_REQUEST_BYTES {
            (self.has_ended, self.input) = (true, Vec::new());
            return Some(Line::TooLong);
        }
        let is_last = self.has_ended && !self.input.is_empty();
        is_last.then(|| Line::Whole(std::mem::take(&mut self.input)))
    }

    /// Sets the answer. The client has its time to take it from now on.
    pub(crate) fn answer(&mut self, mut line: String, now: Instant) {
        line.push('\n');
        (self.output, self.written, self.due) = (line.into_bytes(), 0, deadline(now));
    }

    /// What is to be written.
    pub(crate) fn to_write(&self) -> &[u8] {
        &self.output[self.written..]
    }

    /// Takes note that `bytes` of it were written. After all of it the client has its time for another request.
    pub(crate) fn on_written(&mut self, bytes: usize, now: Instant) {
        self.written += bytes;
        if self.written == self.output.len() {
            (self.output, self.written, self.due) = (Vec::new(), 0, deadline(now));
        }
    }

    /// Whether the client is done, or was too slow.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        let is_done = self.has_ended && self.output.is_empty() && self.input.is_empty();
        is_done || now >= self.due
    }

    /// When it was too slow.
    pub(crate) const fn due(&self) -> Instant {
        self.due
    }
}

fn deadline(now: Instant) -> Instant {
    now + PATIENCE
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn whole(text: &str) -> Option<Line> {
        Some(Line::Whole(text.as_bytes().to_vec()))
    }

    #[test]
    fn a_request_is_answered_before_the_next_is_read() {
        let now = Instant::now();
        let mut client = Conversation::new(now);
        client.on_read(b"on");
        assert_eq!(client.next_line(), None);
        client.on_read(b"e\ntwo\n");
        assert_eq!(client.next_line(), whole("one"));
        assert!(!client.is_to_send(), "the second line is there");
        client.answer("1".into(), now);
        assert_eq!((client.room(), client.next_line()), (0, None));
        assert_eq!(client.to_write(), b"1\n");
        client.on_written(1, now);
        assert_eq!(client.to_write(), b"\n");
        client.on_written(1, now);
        assert_eq!(client.next_line(), whole("two"));
        assert!(!client.is_over(now));
    }

    #[test]
    fn the_last_line_needs_no_end_and_is_answered() {
        let now = Instant::now();
        let mut client = Conversation::new(now);
        client.on_read(b"last");
        client.on_read(b"");
        assert!(!client.is_over(now));
        assert_eq!(client.next_line(), whole("last"));
        client.answer("1".into(), now);
        assert!(!client.is_over(now));
        client.on_written(2, now);
        assert!(client.is_over(now));
    }

    #[test]
    fn a_line_without_end_is_refused_and_is_the_last() {
        let now = Instant::now();
        let mut client = Conversation::new(now);
        client.on_read(&vec![b'x'; client.room()]);
        assert_eq!(client.room(), 0);
        assert_eq!(client.next_line(), Some(Line::TooLong));
        client.answer("no".into(), now);
        client.on_written(3, now);
        assert!(client.is_over(now));
    }

    #[test]
    fn who_sends_or_takes_nothing_in_time_is_dropped() {
        let now = Instant::now();
        let mut client = Conversation::new(now);
        let later = now + PATIENCE - Duration::from_millis(1);
        client.on_read(b"slo");
        assert!(!client.is_over(later) && client.is_over(now + PATIENCE));
        client.on_read(b"w\n");
        _ = client.next_line();
        client.answer("1".into(), later);
        assert!(!client.is_over(now + PATIENCE));
        client.on_written(1, later);
        assert!(client.is_over(later + PATIENCE), "half an answer is not taken");
    }
}
