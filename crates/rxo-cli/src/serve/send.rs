//! An answer onto the connection, a piece of the file at a time.

use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant, SystemTime};

use super::answer::{Answer, Content};
use super::client::{Client, write_until};
use super::limits::{Limits, PIECE_BYTES};
use super::listing::Listing;
use super::refusal::phrase;

/// How an answer is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Only the fields, for HEAD.
    pub(super) is_head: bool,
    /// What the field `Connection` says; `None` leaves it out.
    pub(super) connection: Option<&'static str>,
    /// The client knows chunks (RFC 9112, section 7.1); for one that does not, the end of the connection
    /// is the end of an answer without a length.
    pub(super) knows_chunks: bool,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Sent {
    /// Of the content, the fields not counted.
    pub(super) bytes: u64,
    /// Why it is not all.
    pub(super) broken: Option<io::Error>,
}

/// Sends `answer`; `buffer` is memory to use.
pub(super) fn send(
    client: &mut impl Client,
    answer: &mut Answer,
    manner: Manner,
    limits: &Limits,
    buffer: &mut Vec<u8>,
) -> Sent {
    buffer.clear();
    head(buffer, answer, manner);
    let begun = Instant::now();
    let mut sender = Sender { client, limits, buffer, begun, sent: 0, bytes: 0 };
    let result = match &mut answer.content {
        _ if manner.is_head => sender.flush(),
        Content::Listing(listing) => sender.listing(listing, manner.knows_chunks),
        content => sender.content(content),
    };
    Sent { bytes: sender.bytes, broken: result.err() }
}

/// Status line and fields.
fn head(into: &mut Vec<u8>, answer: &Answer, manner: Manner) {
    let status = answer.status;
    let date = httpdate::fmt_http_date(SystemTime::now());
    let mut field = |name: &str, value: &str| {
        into.extend_from_slice(name.as_bytes());
        into.extend_from_slice(value.as_bytes());
        into.extend_from_slice(b"\r\n");
    };
    field("HTTP/1.1 ", &format!("{status} {}", phrase(status)));
    field("Date: ", &date);
    field("Server: ", "rxo");
    // What a file says of itself is what it is: no guessing.
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
}

/// The connection, with what is to leave next.
struct Sender<'s, C> {
    client: &'s mut C,
    limits: &'s Limits,
    /// Written and not sent; the head shares its segments with the first bytes of the content.
    buffer: &'s mut Vec<u8>,
    begun: Instant,
    /// Sent, the head included.
    sent: u64,
    /// Of the content, sent.
    bytes: u64,
}

impl<C: Client> Sender<'_, C> {
    fn content(&mut self, content: &Content) -> io::Result<()> {
        match content {
            Content::Known | Content::Listing(_) => self.flush(),
            Content::Text(text) => {
                self.buffer.write_all(text.as_bytes())?;
                self.flush()?;
                self.bytes = text.len() as u64;
                Ok(())
            }
            Content::Part { file, from, bytes } => self.part(file, *from, *bytes),
        }
    }

    fn part(&mut self, file: &impl FileExt, from: u64, bytes: u64) -> io::Result<()> {
        if bytes == 0 {
            return self.flush();
        }
        while self.bytes < bytes {
            let written = self.buffer.len();
            let room = PIECE_BYTES.saturating_sub(written).max(1) as u64;
            let length = usize::try_from(room.min(bytes - self.bytes)).unwrap_or(PIECE_BYTES);
            self.buffer.resize(written + length, 0);
            // The length was promised: a file that has become shorter cannot be sent to its end,
            // and the connection breaks, which tells the client.
            file.read_exact_at(&mut self.buffer[written..], from + self.bytes)?;
            self.flush()?;
            self.bytes += length as u64;
        }
        Ok(())
    }

    fn listing(&mut self, listing: &mut Listing, in_chunks: bool) -> io::Result<()> {
        while !listing.is_done() {
            let size_at = self.buffer.len();
            if in_chunks {
                self.buffer.extend_from_slice(b"00000000\r\n");
            }
            let start = self.buffer.len();
            listing.next(self.buffer)?;
            let bytes = self.buffer.len() - start;
            if in_chunks {
                // Zeros before a number change nothing; a piece is never empty.
                let size = format!("{bytes:08x}");
                self.buffer[size_at..size_at + size.len()].copy_from_slice(size.as_bytes());
                let end: &[u8] = if listing.is_done() { b"\r\n0\r\n\r\n" } else { b"\r\n" };
                self.buffer.extend_from_slice(end);
            }
            self.flush()?;
            self.bytes += bytes as u64;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        write_until(self.client, self.buffer, self.deadline())?;
        self.sent += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// When what stands in the buffer must have been taken.
    fn deadline(&self) -> Instant {
        let Limits { piece, least_rate, .. } = *self.limits;
        let of_piece = Instant::now() + piece;
        if least_rate == 0 {
            return of_piece;
        }
        let taken_in = Duration::from_secs_f64(self.sent as f64 / least_rate as f64);
        of_piece.min(self.begun + piece + taken_in)
    }
}
