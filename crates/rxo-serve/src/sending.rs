//! An answer on its way: its head, then its content a piece at a time.
//!
//! Holds one piece of what is rendered here, and none of a file: of that it only knows which part comes
//! next. The first piece of either goes with the head, so that a short answer is one write.

use std::time::{Instant, SystemTime};

use crate::answer::{Answer, Content};
use crate::limits::{Limits, PIECE_BYTES};
use crate::listing::Listing;
use crate::refusal::phrase;

/// How an answer is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Only the head, for HEAD.
    pub(crate) is_head: bool,
    /// The value of the field `Connection`; `None` leaves it out.
    pub(crate) connection: Option<&'static str>,
    /// The client knows chunks (RFC 9112, section 7.1). For one that does not, the end of the
    /// connection is the end of an answer without a length.
    pub(crate) knows_chunks: bool,
}

/// A part of the file that was found last, which is never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its offset in the file.
    pub from: u64,
    /// Its length: at most [`PIECE_BYTES`], and to the next multiple of them in the file.
    pub bytes: usize,
}

/// The part of an answer that was not sent yet.
#[derive(Debug)]
pub(crate) struct Sending {
    /// Behind this piece.
    rest: Content,
    in_chunks: bool,
    /// The part of the piece that is rendered here, the head included.
    buffer: Vec<u8>,
    /// Behind `buffer`, the part of the piece that is in the file.
    part: Option<Part>,
    /// So much of the piece is written.
    written: usize,
    /// So much of the piece is content.
    content: u64,
    is_filled: bool,
    begun: Instant,
    /// When the piece must have been written; set when its writing begins.
    deadline: Option<Instant>,
    /// Written before the piece, the head included.
    sent: u64,
    /// Content written before the piece.
    bytes: u64,
}

/// What a sending needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// [`Sending::unwritten`] must be written before this time.
    Write { until: Instant },
    /// Everything was written.
    Nothing,
    /// The client was too slow.
    Late,
}

impl Sending {
    /// Begins to send `answer` with its head; `date` is the value of the field `Date`.
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

    /// What is due at `now`.
    pub(crate) fn due(&mut self, limits: &Limits, now: Instant) -> Due {
        loop {
            if !self.is_filled {
                self.fill();
            }
            if self.written < self.piece_bytes() {
                return self.write_due(limits, now);
            }
            self.turn_over();
            if matches!(self.rest, Content::Known) {
                return Due::Nothing;
            }
        }
    }

    /// What is to be written: bytes, and behind them a part of the file.
    pub(crate) fn unwritten(&self) -> (&[u8], Option<Part>) {
        let in_part = self.written.saturating_sub(self.buffer.len());
        let rest =
            |part: Part| Part { from: part.from + in_part as u64, bytes: part.bytes - in_part };
        (&self.buffer[self.written.min(self.buffer.len())..], self.part.map(rest))
    }

    /// Notes that `bytes` of [`Sending::unwritten`] were written.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.written = self.piece_bytes().min(self.written + bytes);
    }

    /// Content that was sent, in bytes; a piece counts when all of it was written.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn piece_bytes(&self) -> usize {
        self.buffer.len() + self.part.map_or(0, |part| part.bytes)
    }

    /// Makes the next piece.
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

    /// All of the piece was written: the next may take its place.
    fn turn_over(&mut self) {
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

/// Status line and fields.
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
    // Clients must not guess another type than the one that is stated.
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

/// Appends the next piece of the page, as a chunk if wanted. Returns the length of the piece.
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
