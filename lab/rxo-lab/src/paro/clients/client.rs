//! A client, which downloads whole files one after the other over a single connection without loss.

use anyhow::{Context, Result, bail, ensure};
use rxo::wire::tcp::Timestamp;
use rxo::wire::{SeqNumber, TcpFlags};

use super::ENDS;
use crate::files;
use crate::modelled::Said;

/// The state of a client.
#[derive(Debug)]
pub(super) struct Client {
    port: u16,
    snd_nxt: u32,
    rcv_nxt: SeqNumber,
    ts_recent: u32,
    is_open: bool,
    /// Segments received since the last ACK.
    pub(super) unacknowledged: usize,
    answer: Answer,
    random: u64,
}

/// The received part of a response.
#[derive(Debug, Default)]
struct Answer {
    /// The response head, until it is complete.
    head: Vec<u8>,
    file: u32,
    /// Offset of the next byte in the file; the next field is the end offset.
    at: u64,
    end: u64,
    is_whole_file: bool,
}

/// The effect of a received frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Got {
    /// File bytes received.
    pub(super) bytes: u64,
    /// `true` if the file is complete and the next request is due.
    pub(super) is_done: bool,
    /// Sequence range of duplicate data, from a loss probe that came too early; reported to the server as
    /// D-SACK.
    pub(super) duplicate: Option<(u32, u32)>,
}

impl Client {
    pub(super) fn new(number: u16) -> Self {
        Self {
            port: FIRST_PORT + number,
            snd_nxt: 1_000_000 * u32::from(number),
            rcv_nxt: SeqNumber(0),
            ts_recent: 0,
            is_open: false,
            unacknowledged: 0,
            answer: Answer::default(),
            random: u64::from(number) + 1,
        }
    }

    /// Returns the index of the client with `port`.
    pub(super) fn number(port: u16) -> usize {
        usize::from(port.wrapping_sub(FIRST_PORT))
    }

    /// Builds the SYN that opens the connection.
    pub(super) fn open(&mut self, ts_value: u32) -> Result<Vec<u8>> {
        let syn = self.said(TcpFlags::SYN, ts_value, &[]).frame(&ENDS)?;
        self.snd_nxt = self.snd_nxt.wrapping_add(1);
        Ok(syn)
    }

    /// Processes a frame of the server, which may hold several segments: its sequence number, flags and TSval, and
    /// its payload.
    pub(super) fn receive(
        &mut self,
        (seq, flags, ts_value): (SeqNumber, TcpFlags, u32),
        text: &[u8],
    ) -> Result<Got> {
        let refused = TcpFlags::RST.union(TcpFlags::FIN);
        ensure!(!flags.intersects(refused), "the server ended a connection");
        self.ts_recent = ts_value;
        if flags.contains(TcpFlags::SYN) {
            self.rcv_nxt = seq + 1;
            self.is_open = true;
            return Ok(Got { is_done: true, ..Got::default() });
        }
        if text.is_empty() {
            return Ok(Got::default());
        }
        let end = seq + text.len() as u32;
        if !self.rcv_nxt.is_before(end) {
            return Ok(Got { duplicate: Some((seq.0, end.0)), ..Got::default() });
        }
        ensure!(self.is_open && seq == self.rcv_nxt, "the server left something out");
        self.rcv_nxt = end;
        self.answer.take(text)
    }

    /// Builds a pure ACK of all received bytes but the last `back`.
    pub(super) fn ack(&self, back: u32, ts_value: u32) -> Result<Vec<u8>> {
        let said = self.said(TcpFlags::ACK, ts_value, &[]);
        Said { ack: said.ack.wrapping_sub(back), ..said }.frame(&ENDS)
    }

    /// Builds an ACK with a D-SACK block for the `duplicate` range.
    pub(super) fn repeat(&self, duplicate: (u32, u32), ts_value: u32) -> Result<Vec<u8>> {
        let said = self.said(TcpFlags::ACK, ts_value, &[]);
        Said { duplicate: Some(duplicate), ..said }.frame(&ENDS)
    }

    /// Builds the next request, for a random file of `files`. The first request is for a random part of its
    /// file, so that clients do not run in step.
    pub(super) fn ask(&mut self, (files, bytes): (u32, u64), ts_value: u32) -> Result<Vec<u8>> {
        let file = (self.next_random() % u64::from(files)) as u32;
        let is_first = self.answer.end == 0;
        let at = if is_first { self.next_random() % bytes } else { 0 };
        let range = if at == 0 { String::new() } else { format!("Range: bytes={at}-\r\n") };
        let request = format!("GET /{file} HTTP/1.1\r\nHost: server\r\n{range}\r\n");
        self.answer = Answer { file, at, end: bytes, is_whole_file: at == 0, ..Answer::default() };
        let flags = TcpFlags::ACK.union(TcpFlags::PSH);
        let frame = self.said(flags, ts_value, request.as_bytes()).frame(&ENDS)?;
        self.snd_nxt = self.snd_nxt.wrapping_add(request.len() as u32);
        Ok(frame)
    }

    fn said<'a>(&self, flags: TcpFlags, ts_value: u32, text: &'a [u8]) -> Said<'a> {
        Said {
            port: self.port,
            seq: self.snd_nxt,
            ack: self.rcv_nxt.0,
            flags,
            timestamp: Timestamp { value: ts_value, echo: self.ts_recent },
            duplicate: None,
            text,
        }
    }

    /// Returns the next number of a xorshift generator with a fixed seed, so that runs repeat.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
    }
}

impl Answer {
    /// Processes a part of the response.
    fn take(&mut self, text: &[u8]) -> Result<Got> {
        let bytes = if self.head.ends_with(END) { text } else { self.after_head(text)? };
        if !files::are_right(self.file, self.at, bytes) {
            bail!("file {} has wrong bytes from {} on", self.file, self.at);
        }
        self.at += bytes.len() as u64;
        ensure!(self.at <= self.end, "file {} is too long", self.file);
        let is_done = self.at == self.end && self.head.ends_with(END);
        Ok(Got { bytes: bytes.len() as u64, is_done, duplicate: None })
    }

    /// Splits the response head off `text`. Returns the bytes after it.
    fn after_head<'t>(&mut self, text: &'t [u8]) -> Result<&'t [u8]> {
        let end = text.windows(END.len()).position(|window| window == END);
        let end = end.context("the head of an answer is not in one segment")? + END.len();
        self.head.extend_from_slice(&text[..end]);
        let expected: &[u8] = if self.is_whole_file { b"HTTP/1.1 200" } else { b"HTTP/1.1 206" };
        let head = String::from_utf8_lossy(&self.head);
        ensure!(self.head.starts_with(expected), "a request was refused: {head}");
        Ok(&text[end..])
    }
}

/// The end of an HTTP response head.
const END: &[u8] = b"\r\n\r\n";
const FIRST_PORT: u16 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_done_when_all_of_the_file_is_there() {
        let mut client = Client::new(3);
        client.answer =
            Answer { file: 0, at: 1, end: 21, is_whole_file: false, ..Answer::default() };
        let head = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 20\r\n\r\n0123456789";
        let got = client.answer.take(head).unwrap();
        assert_eq!((got.bytes, got.is_done), (10, false));
        let got = client.answer.take(b"0123456789").unwrap();
        assert_eq!((got.bytes, got.is_done), (10, true));
        assert!(client.answer.take(b"0").is_err(), "more than the file");
    }

    #[test]
    fn what_is_left_out_or_refused_is_an_error() {
        let mut client = Client::new(0);
        let mut receive =
            |seq, flags, text: &[u8]| client.receive((SeqNumber(seq), flags, 1), text);
        let syn = TcpFlags::SYN.union(TcpFlags::ACK);
        assert!(receive(7, syn, b"").unwrap().is_done);
        assert!(receive(9, TcpFlags::ACK, b"x").is_err(), "a hole");
        let got = receive(7, TcpFlags::ACK, b"x").unwrap();
        assert_eq!((got.bytes, got.duplicate), (0, Some((7, 8))), "again");
        assert!(receive(8, TcpFlags::ACK, b"HTTP/1.1 404 No\r\n\r\n").is_err());
        assert!(receive(8, TcpFlags::RST, b"").is_err());
    }
}
