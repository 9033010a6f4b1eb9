//! The HTTP server whose instructions are counted: the conversations of `rxo serve`. Its files are in memory, and it
//! lends their pages to connections, as `rxo serve` lends pages of its cache and the paper's nginx those of the
//! kernel's cache.
//!
//! `rxo_serve::Server`, the loop of [`rxo serve`](super::live), is not used: it opens files by `openat2`, which
//! valgrind 3.19 answers with "not implemented", so that its `Root` refuses the directory.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use rxo_host::{Readiness, SharedBytes, TcpListener, TcpStream};
use rxo_serve::{Conversation, Facts, Found, Limits, Now, READ_BYTES, Step};

use crate::files::{self, PAGE_BYTES};

pub(super) struct App {
    listener: TcpListener,
    readiness: Readiness,
    files: Files,
    guests: Vec<Guest>,
    ready: Vec<u64>,
}

/// The files, all of one length.
struct Files {
    pages: Vec<SharedBytes>,
    bytes: u64,
    /// One time for all requests, so that every run executes the same instructions.
    now: Now,
}

/// The connection of one client.
struct Guest {
    stream: TcpStream,
    conversation: Conversation,
    /// The number of the file that was found last.
    file: u32,
}

impl App {
    /// Makes a server of files of `bytes` bytes, a multiple of [`PAGE_BYTES`], for clients of `listener`.
    pub(super) fn new(listener: TcpListener, bytes: u64) -> Result<Self> {
        listener.set_nonblocking(true)?;
        let readiness = Readiness::new();
        readiness.watch_listener(&listener, DOOR)?;
        let pages = files::pages().into_iter().map(SharedBytes::from).collect();
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let now = Now { instant: Instant::now(), date, may_stay: true };
        let files = Files { pages, bytes, now };
        // A readiness token comes only after a call that would have blocked, so the listener begins as ready.
        Ok(Self { listener, readiness, files, guests: Vec::new(), ready: vec![DOOR] })
    }

    /// Serves every ready connection, and accepts new ones.
    pub(super) fn turn(&mut self) -> Result<()> {
        self.readiness.wait(&mut self.ready, Some(Duration::ZERO));
        for token in std::mem::take(&mut self.ready) {
            match token {
                DOOR => self.accept()?,
                token => {
                    let guest = self.guests.get_mut(token as usize);
                    guest.context("a token of nobody")?.serve(&self.files)?;
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<()> {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            self.readiness.watch(&stream, self.guests.len() as u64)?;
            let conversation = Conversation::new(Limits::default());
            let mut guest = Guest { stream, conversation, file: 0 };
            guest.serve(&self.files)?;
            self.guests.push(guest);
        }
        Ok(())
    }
}

impl Guest {
    /// Continues the conversation until the connection has nothing to read, or no room.
    fn serve(&mut self, files: &Files) -> Result<()> {
        loop {
            let done = match self.conversation.next(files.now) {
                Step::Read { .. } => {
                    let mut buffer = [0; READ_BYTES];
                    self.stream.read(&mut buffer).map(|count| {
                        self.conversation.received(&buffer[..count]);
                    })
                }
                Step::Find(wanted) => {
                    let name = wanted.path.to_str().context("no name of a file")?;
                    self.file = name.parse().context("no number of a file")?;
                    let facts = Facts { bytes: files.bytes, changed: SystemTime::UNIX_EPOCH };
                    self.conversation.found(Ok(Found::File(facts)));
                    Ok(())
                }
                Step::Write { bytes, part, .. } => {
                    let mut text = part.map_or_else(SharedBytes::default, |part| {
                        let page = (part.from / PAGE_BYTES) as u32;
                        let mut text = files.pages[files::page_number(self.file, page)].clone();
                        text.advance((part.from % PAGE_BYTES) as usize);
                        text.first(part.bytes)
                    });
                    let written = self.stream.write_both(bytes, &mut text);
                    written.map(|count| self.conversation.on_written(count))
                }
                Step::Answered(_) => Ok(()),
                step => bail!("a client has gone: {step:?}"),
            };
            match done {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                done => done.context("a client's connection")?,
            }
        }
    }
}

const DOOR: u64 = u64::MAX;
