//! An answer onto the connection, a piece of the file at a time.

use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::time::{Instant, SystemTime};

use super::answer::{Answer, Content};
use super::client::{Client, write_until};
use super::limits::{Limits, PIECE_BYTES};
use super::refusal::phrase;

/// How an answer is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Only the fields, for HEAD.
    pub(super) is_head: bool,
    /// What the field `Connection` says; `None` leaves it out.
    pub(super) connection: Option<&'static str>,
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
    answer: &Answer,
    manner: Manner,
    limits: &Limits,
    buffer: &mut Vec<u8>,
) -> Sent {
    buffer.clear();
    head(buffer, answer, manner);
    let mut sender = Sender { client, limits, buffer, bytes: 0 };
    let result = if manner.is_head { sender.flush() } else { sender.content(&answer.content) };
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
    /// Of the content, sent.
    bytes: u64,
}

impl<C: Client> Sender<'_, C> {
    fn content(&mut self, content: &Content) -> io::Result<()> {
        match content {
            Content::Known => self.flush(),
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

    fn flush(&mut self) -> io::Result<()> {
        let deadline = Instant::now() + self.limits.piece;
        write_until(self.client, self.buffer, deadline)?;
        self.buffer.clear();
        Ok(())
    }
}
