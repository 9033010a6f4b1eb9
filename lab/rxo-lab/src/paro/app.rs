//! The HTTP server whose instructions are counted. Its files are in memory, and it lends their pages to
//! connections, as `rxo serve` lends pages of its cache and the paper's nginx those of the kernel's cache.
//!
//! It replaces [`rxo serve`](super::live), which opens files with a system call that valgrind does not
//! support.

use std::io::{ErrorKind, Read};
use std::time::Duration;

use anyhow::{Context, Result};
use rxo_host::{Readiness, SharedBytes, TcpListener, TcpStream};

use crate::files::{self, PAGE_BYTES};

pub(super) struct App {
    listener: TcpListener,
    readiness: Readiness,
    pages: Vec<SharedBytes>,
    file_bytes: u64,
    guests: Vec<Guest>,
    ready: Vec<u64>,
}

/// The connection of one client.
struct Guest {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Option<Answer>,
}

/// The part of a response that is still to be written.
struct Answer {
    head: Vec<u8>,
    file: u32,
    at: u64,
}

impl App {
    /// Makes a server of files of `file_bytes` bytes, a multiple of [`PAGE_BYTES`], for clients of
    /// `listener`.
    pub(super) fn new(listener: TcpListener, file_bytes: u64) -> Result<Self> {
        listener.set_nonblocking(true)?;
        let readiness = Readiness::new();
        readiness.watch_listener(&listener, DOOR)?;
        let pages = files::pages().into_iter().map(SharedBytes::from).collect();
        // A readiness token comes only after a call that would have blocked, so the listener begins as ready.
        let ready = vec![DOOR];
        Ok(Self { listener, readiness, pages, file_bytes, guests: Vec::new(), ready })
    }

    /// Serves every ready connection, and accepts new ones.
    pub(super) fn turn(&mut self) -> Result<()> {
        self.readiness.wait(&mut self.ready, Some(Duration::ZERO));
        for token in std::mem::take(&mut self.ready) {
            match token {
                DOOR => self.accept()?,
                token => self.serve(token as usize)?,
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<()> {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            let place = self.guests.len();
            self.readiness.watch(&stream, place as u64)?;
            self.guests.push(Guest { stream, request: Vec::new(), answer: None });
            self.serve(place)?;
        }
        Ok(())
    }

    fn serve(&mut self, place: usize) -> Result<()> {
        let Self { guests, pages, file_bytes, .. } = self;
        let guest = guests.get_mut(place).context("a token of nobody")?;
        while guest.read(*file_bytes)? && guest.write(pages, *file_bytes)? {}
        Ok(())
    }
}

impl Guest {
    /// Reads the next request, unless a response is in progress. Returns `true` if there is a response to
    /// write.
    fn read(&mut self, file_bytes: u64) -> Result<bool> {
        while self.answer.is_none() {
            let mut buffer = [0; 1_024];
            let count = match self.stream.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                read => read.context("a client's request")?,
            };
            self.request.extend_from_slice(&buffer[..count]);
            if self.request.ends_with(b"\r\n\r\n") {
                let request = String::from_utf8_lossy(&self.request);
                self.answer = Some(Answer::to(&request, file_bytes).context("no valid request")?);
                self.request.clear();
            }
        }
        Ok(true)
    }

    /// Writes as much as the connection accepts. Returns `true` if the response is complete.
    fn write(&mut self, pages: &[SharedBytes], file_bytes: u64) -> Result<bool> {
        while let Some(answer) = &mut self.answer {
            if answer.at == file_bytes {
                self.answer = None;
                break;
            }
            let page = files::page_number(answer.file, (answer.at / PAGE_BYTES) as u32);
            let mut text = pages[page].clone();
            text.advance((answer.at % PAGE_BYTES) as usize);
            let written = match self.stream.write_both(&answer.head, &mut text) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                written => written.context("a client's answer")?,
            };
            let of_head = written.min(answer.head.len());
            answer.head.drain(..of_head);
            answer.at += (written - of_head) as u64;
        }
        Ok(true)
    }
}

impl Answer {
    /// Makes the response to `GET /FILE`, optionally with `Range: bytes=AT-`; `None` if the request is
    /// invalid.
    fn to(request: &str, file_bytes: u64) -> Option<Self> {
        let file = request.strip_prefix("GET /")?.split(' ').next()?.parse().ok()?;
        let range = request.split_once("Range: bytes=").and_then(|(_, rest)| rest.split_once('-'));
        let at = range.map_or(Some(0), |(at, _)| at.parse().ok())?;
        let status = if range.is_some() { "206 Partial Content" } else { "200 OK" };
        let length = file_bytes.checked_sub(at)?;
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        Some(Self { head, file, at })
    }
}

const DOOR: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_for_a_file_or_the_end_of_one() {
        let of = |request: &str| Answer::to(request, 1_000);
        let whole = of("GET /7 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!((whole.file, whole.at), (7, 0));
        assert_eq!(whole.head, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        let end = of("GET /7 HTTP/1.1\r\nRange: bytes=990-\r\n\r\n").unwrap();
        assert!(end.at == 990 && end.head.starts_with(b"HTTP/1.1 206 "));
        assert!(of("GET /x HTTP/1.1\r\n\r\n").is_none());
    }
}
