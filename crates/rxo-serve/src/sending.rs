//! Sends an answer: its head, then its content one piece at a time.
//!
//! The state holds one piece of rendered content, but no file data, only the position in the file. The first
//! piece is combined with the head, so that a short answer is a single write.

use std::time::{Instant, SystemTime};

use crate::answer::{Answer, Content};
use crate::limits::{Limits, PIECE_BYTES};
use crate::listing::Listing;
use crate::refusal::phrase;

/// The form in which an answer is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// `true` if only the head of the answer is sent, as for HEAD requests.
    pub(crate) is_head: bool,
    /// The value of the header field `Connection`; `None` omits the field.
    pub(crate) connection: Option<&'static str>,
    /// `true` if the client supports chunked encoding (RFC 9112, section 7.1). Otherwise an answer without a
    /// length ends with the connection.
    pub(crate) knows_chunks: bool,
}

/// A non-empty part of the file that was found last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The offset of the part in the file, in bytes.
    pub from: u64,
    /// The length of the part in bytes: at most [`PIECE_BYTES`], because a part does not extend beyond the next
    /// multiple of `PIECE_BYTES` in the file.
    pub bytes: usize,
}

/// The part of an answer that was not sent yet, and its progress.
#[derive(Debug)]
pub(crate) struct Sending {
    /// The content that follows the current piece.
    rest: Content,
    in_chunks: bool,
    /// The rendered bytes of the current piece, including the head of the answer.
    buffer: Vec<u8>,
    /// The part of the current piece that comes from the file, after `buffer`; `None` if no part comes from a
    /// file.
    part: Option<Part>,
    /// The number of bytes of the current piece that were written.
    written: usize,
    /// The number of bytes of the current piece that are content, without the head and without the framing of
    /// chunks.
    content: u64,
    is_filled: bool,
    begun: Instant,
    /// The deadline for writing the current piece; `None` until its writing begins.
    deadline: Option<Instant>,
    /// The number of bytes written before the current piece, including the head.
    sent: u64,
    /// The number of content bytes written before the current piece.
    bytes: u64,
}

/// The next action while an answer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Write [`Sending::unwritten`] before the time `until`.
    Write { until: Instant },
    /// The whole answer was written.
    Nothing,
    /// The client accepts the answer too slowly.
    Late,
}

impl Sending {
    /// Starts to send `answer` with its head; `date` is the value of the field `Date`.
    pub(crate) fn new(answer: Answer, manner: Manner, date: SystemTime, begun: Instant) -> Self {
        let buffer = head(&answer, manner, date);
        Self {
            rest: if manner.is_head { Content::Known } else { answer.content },
            in_chunks: manner.knows_chunks,
            buffer,
            part: None,
            written: 0,
            content: 0,
            is_filled: false,
            begun,
            deadline: None,
            sent: 0,
            bytes: 0,
        }
    }

    /// Returns the next action at the time `now`. Continues with the next piece once the current piece is
    /// written.
    pub(crate) fn due(&mut self, limits: &Limits, now: Instant) -> Due {
        loop {
            if !self.is_filled {
                self.fill();
            }
            if self.written < self.piece_bytes() {
                return self.write_due(limits, now);
            }
            self.end_piece();
            if matches!(self.rest, Content::Known) {
                return Due::Nothing;
            }
        }
    }

    /// Returns the bytes of the current piece that are not written yet, and the part of the file that follows
    /// these bytes.
    pub(crate) fn unwritten(&self) -> (&[u8], Option<Part>) {
        let in_part = self.written.saturating_sub(self.buffer.len());
        let rest =
            |part: Part| Part { from: part.from + in_part as u64, bytes: part.bytes - in_part };
        (&self.buffer[self.written.min(self.buffer.len())..], self.part.map(rest))
    }

    /// Records that `bytes` bytes of [`Sending::unwritten`] were written.
    pub(crate) fn on_written(&mut self, bytes: usize) {
        self.written = self.piece_bytes().min(self.written + bytes);
    }

    /// Returns the number of content bytes that were sent; a piece counts once all of it was written.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn piece_bytes(&self) -> usize {
        self.buffer.len() + self.part.map_or(0, |part| part.bytes)
    }

    /// Prepares the next piece of the answer.
    fn fill(&mut self) {
        self.is_filled = true;
        match &mut self.rest {
            Content::Known | Content::Part { bytes: 0, .. } => self.rest = Content::Known,
            Content::Text(text) => {
                self.buffer.extend_from_slice(text.as_bytes());
                self.content = text.len() as u64;
                self.rest = Content::Known;
            }
            Content::Listing(listing) => {
                self.content = append(&mut self.buffer, listing, self.in_chunks);
                if listing.is_done() {
                    self.rest = Content::Known;
                }
            }
            Content::Part { from, bytes } => {
                let piece = PIECE_BYTES as u64;
                self.content = (piece - *from % piece).min(*bytes);
                self.part = Some(Part { from: *from, bytes: self.content as usize });
                *from += self.content;
                *bytes -= self.content;
            }
        }
    }

    fn write_due(&mut self, limits: &Limits, now: Instant) -> Due {
        let (begun, sent) = (self.begun, self.sent);
        let until = *self.deadline.get_or_insert_with(|| limits.deadline(now, begun, sent));
        if now < until { Due::Write { until } } else { Due::Late }
    }

    /// Ends the current piece of the answer, which was written completely.
    fn end_piece(&mut self) {
        self.sent += self.piece_bytes() as u64;
        self.bytes += self.content;
        self.buffer.clear();
        self.part = None;
        (self.written, self.content, self.is_filled, self.deadline) = (0, 0, false, None);
        if matches!(self.rest, Content::Part { bytes: 0, .. }) {
            self.rest = Content::Known;
        }
    }
}

/// Returns the head of the answer: the status line and the header fields.
fn head(answer: &Answer, manner: Manner, date: SystemTime) -> Vec<u8> {
    let mut head = Vec::new();
    let status = answer.status;
    let mut field = |name: &str, value: &str| {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    };
    field("HTTP/1.1 ", &format!("{status} {}", phrase(status)));
    field("Date: ", &httpdate::fmt_http_date(date));
    field("Server: ", "rxo");
    // Clients must not guess a type other than the stated one.
    field("X-Content-Type-Options: ", "nosniff");
    for (name, value) in &answer.fields {
        field(&format!("{name}: "), value);
    }
    if let Some(length) = answer.length() {
        field("Content-Length: ", &length.to_string());
    }
    if answer.is_streamed() && manner.knows_chunks {
        field("Transfer-Encoding: ", "chunked");
    }
    if let Some(connection) = manner.connection {
        field("Connection: ", connection);
    }
    field("", "");
    head
}

/// Appends the next piece of the page `listing` to `buffer`, as a chunk if `in_chunks`. Returns the length of
/// the piece in bytes, without the framing of a chunk.
fn append(buffer: &mut Vec<u8>, listing: &mut Listing, in_chunks: bool) -> u64 {
    let piece = listing.next();
    if in_chunks {
        buffer.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
    }
    buffer.extend_from_slice(piece.as_bytes());
    if in_chunks {
        let end: &[u8] = if listing.is_done() { b"\r\n0\r\n\r\n" } else { b"\r\n" };
        buffer.extend_from_slice(end);
    }
    piece.len() as u64
}
