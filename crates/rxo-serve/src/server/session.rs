//! One client of the server: performs its steps until it must wait.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::conversation::{Conversation, Exchange, Now, Step};
use crate::files::{DiskWait, FileTask, Job, Opened, Page, Pages, Readers, Reply, Root};
use crate::limits::{PIECE_BYTES, READ_BYTES};
use crate::sending::Part;

/// A connection with a client. No call blocks: a call that would have to wait fails with
/// [`ErrorKind::WouldBlock`], and the owner of the server then reports when the call can be retried
/// ([`Server::ready`](super::Server::ready)).
pub trait Client {
    /// Reads received bytes of the client; returns 0 at the end of the stream.
    ///
    /// # Errors
    /// If the connection broke; `WouldBlock` if no bytes are available.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Writes `bytes` and then `text`, whose bytes do not change while it is referenced. Returns the number of
    /// bytes accepted from `bytes` and `text` together. An implementation that keeps `text` should check
    /// [`Text::is_most_of_its_page`].
    ///
    /// # Errors
    /// If the connection broke; `WouldBlock` if the send buffer is full.
    fn write(&mut self, bytes: &[u8], text: Option<&Text>) -> io::Result<usize>;

    /// Returns the number of written bytes that the client has not received; 0 if that is unknown. As long as
    /// the number is not 0 at the end of a connection, the client counts towards the limits, and the server
    /// calls this function every [`Limits::linger`](crate::Limits::linger).
    fn in_flight_bytes(&mut self) -> u64 {
        0
    }

    /// Shuts down sending; written bytes are still delivered.
    ///
    /// # Errors
    /// If the connection broke.
    fn finish(&mut self) -> io::Result<()>;

    /// Resets the connection, so that the client knows that the answer is incomplete.
    fn reset(&mut self);
}

/// A part of a cached page of a file, for writing without a copy.
#[derive(Clone, Debug)]
pub struct Text {
    page: Page,
    range: Range<usize>,
}

impl Text {
    /// Returns `true` if this part is at least half of its page. A stored `Text` keeps its whole page in
    /// memory, so a client that requests many small parts could occupy a page for each part. Copy a smaller
    /// part instead.
    #[must_use]
    pub fn is_most_of_its_page(&self) -> bool {
        self.range.len() >= self.page.len() / 2
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        &self.page[self.range.clone()]
    }
}

/// A client with its conversation and its state in the server.
pub(super) struct Session<'c> {
    client: Box<dyn Client + 'c>,
    pub(super) peer: SocketAddr,
    conversation: Conversation,
    /// The client's open files; `None` while a reader thread has these files, at most until `task_deadline`.
    opened: Option<Opened>,
    /// The deadline of the job that a reader thread does for this client; `None` without a job.
    task_deadline: Option<Instant>,
    /// The page that is being sent, and its index; `None` while the server waits for the client, so that a
    /// slow client keeps no page.
    page: Option<(u64, Page)>,
    /// The time of the client's entry in `Server::deadlines`; `None` without an entry.
    pub(super) deadline: Option<Instant>,
    /// `true` while the client is in the queue of clients that can proceed.
    pub(super) is_queued: bool,
    /// `true` if the client counts towards the limit of its address.
    pub(super) has_place: bool,
}

/// The state that all clients share while the server lets them proceed.
pub(super) struct Shared {
    pub(super) root: Arc<Root>,
    pub(super) pages: Pages,
    pub(super) readers: Readers,
    /// The maximum time for a reader thread to finish a job.
    pub(super) disk_timeout: Duration,
    pub(super) exchanges: Vec<(SocketAddr, Exchange)>,
    pub(super) scratch: Box<[u8; READ_BYTES]>,
}

/// The reason why a client's steps have stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// The client or a reader thread must act first. The client proceeds again at this instant even without
    /// such an event.
    Until(Instant),
    /// The client has made its maximum number of steps for this turn.
    Turn,
    /// The conversation has ended.
    Over,
}

/// The result of a step: the reason for which the steps must stop, or `None` if the next step can follow at
/// once.
type Progress = io::Result<Option<Rest>>;

impl<'c> Session<'c> {
    pub(super) fn new(
        client: Box<dyn Client + 'c>,
        peer: SocketAddr,
        conversation: Conversation,
        has_place: bool,
    ) -> Self {
        Self {
            client,
            peer,
            conversation,
            opened: Some(Opened::default()),
            task_deadline: None,
            page: None,
            deadline: None,
            is_queued: false,
            has_place,
        }
    }

    #[cfg(test)]
    pub(super) fn holds_no_page(&self) -> bool {
        self.page.is_none()
    }

    /// Performs steps of the client's conversation until the client or a reader thread must act first, or the
    /// maximum number of steps is reached. Returns the reason for which the steps have stopped.
    pub(super) fn drive(
        &mut self,
        token: u64,
        shared: &mut Shared,
        date: SystemTime,
        may_stay: bool,
        clock: &mut dyn FnMut() -> Instant,
    ) -> Rest {
        let mut rest = Rest::Turn;
        for _ in 0..MOST_STEPS {
            let now = Now { instant: clock(), date, may_stay };
            match self.step(token, shared, now) {
                Ok(None) => {}
                Ok(Some(stopped)) => {
                    rest = stopped;
                    break;
                }
                // An interrupted call is repeated.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.conversation.broken(),
            }
        }
        // Data that a slow client does not accept occupies no memory here.
        self.page = None;
        rest
    }

    fn step(&mut self, token: u64, shared: &mut Shared, now: Now) -> Progress {
        // Whatever the client does, its own task must be finished first.
        let Some(opened) = &mut self.opened else { return Ok(self.wait_for_reader(now.instant)) };
        let task = match self.conversation.next(now) {
            Step::Read { until } => {
                let read = unless_blocked(self.client.read(&mut shared.scratch[..]))?;
                let Some(bytes) = read else { return Ok(Some(Rest::Until(until))) };
                self.conversation.received(&shared.scratch[..bytes]);
                return Ok(None);
            }
            Step::Write { bytes, part, until } => {
                if part.is_some()
                    && let Some(rest) = opened.unstable_for(now.date)
                {
                    return Ok(Some(Rest::Until(until.min(now.instant + rest))));
                }
                let pages = &mut shared.pages;
                let text = part.map(|part| text(opened, &mut self.page, pages, part, now.date));
                match text.transpose()? {
                    Some(None) => FileTask::Page(part.map_or(0, index)),
                    text => {
                        let written = self.client.write(bytes, text.flatten().as_ref());
                        let Some(bytes) = unless_blocked(written)? else {
                            return Ok(Some(Rest::Until(until)));
                        };
                        if bytes == 0 {
                            return Err(ErrorKind::WriteZero.into());
                        }
                        self.conversation.on_written(bytes);
                        return Ok(None);
                    }
                }
            }
            Step::Find(lookup) => match opened.find(&shared.root, &lookup, DiskWait::None) {
                Some(found) => {
                    self.conversation.found(found);
                    return Ok(None);
                }
                None => FileTask::Find(lookup),
            },
            Step::List => FileTask::List,
            Step::Answered(exchange) => {
                opened.close();
                // The next answer may be about another file, whose pages have the same indices.
                self.page = None;
                if !exchange.is_complete {
                    self.client.reset();
                }
                shared.exchanges.push((self.peer, exchange));
                return Ok(None);
            }
            Step::Finish => return self.finish(),
            Step::Drain { until } => return self.drain(shared, until),
            Step::Reset => {
                self.client.reset();
                return Ok(None);
            }
            Step::Close => return Ok(Some(Rest::Over)),
        };
        Ok(self.send_reader(token, task, shared, now.instant))
    }

    fn send_reader(
        &mut self,
        token: u64,
        task: FileTask,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Rest> {
        let opened = self.opened.take().unwrap_or_default();
        if let Err(job) = shared.readers.send(Job { token, opened, task }) {
            self.opened = Some(job.opened);
            self.reset();
            return None;
        }
        let until = now + shared.disk_timeout;
        self.task_deadline = Some(until);
        Some(Rest::Until(until))
    }

    /// Shuts down sending, after reporting the bytes in flight.
    fn finish(&mut self) -> Progress {
        self.conversation.in_flight_bytes(self.client.in_flight_bytes());
        self.client.finish().map(|()| None)
    }

    /// Waits until the written bytes have arrived at the client, and ignores bytes that the client sends during
    /// the wait.
    fn drain(&mut self, shared: &mut Shared, until: Instant) -> Progress {
        let bytes = self.client.in_flight_bytes();
        self.conversation.in_flight_bytes(bytes);
        match unless_blocked(self.client.read(&mut shared.scratch[..]))? {
            // An end of the stream is returned again by each read.
            Some(0) | None if bytes > 0 => return Ok(Some(Rest::Until(until))),
            Some(read) => self.conversation.received(&shared.scratch[..read]),
            None => {}
        }
        Ok(None)
    }

    fn wait_for_reader(&mut self, now: Instant) -> Option<Rest> {
        if let Some(until) = self.task_deadline.filter(|until| now < *until) {
            return Some(Rest::Until(until));
        }
        // The files that the reader has open will be dropped when it is done.
        self.opened = Some(Opened::default());
        self.reset();
        None
    }

    /// Resets the connection, because the disk does not answer.
    fn reset(&mut self) {
        self.client.reset();
        self.conversation.broken();
    }

    /// Processes the reply of a reader thread.
    pub(super) fn on_reply(
        &mut self,
        opened: Opened,
        reply: Reply,
        pages: &mut Pages,
        date: SystemTime,
    ) {
        match reply {
            Reply::Found(found) => self.conversation.found(found),
            Reply::Listed(names) => self.conversation.listed(names),
            Reply::Page(Ok(bytes), index) => {
                self.page = Some((index, opened.keep_page(pages, index, bytes, date)));
            }
            Reply::Page(Err(_), _) => self.conversation.broken(),
        }
        self.opened = Some(opened);
    }
}

/// Returns the bytes of `part`; `None` if a reader thread must first read the page that contains them.
fn text(
    opened: &Opened,
    current: &mut Option<(u64, Page)>,
    pages: &mut Pages,
    part: Part,
    date: SystemTime,
) -> io::Result<Option<Text>> {
    let index = index(part);
    let page = match current.take().filter(|(number, _)| *number == index) {
        Some((_, page)) => page,
        None => match opened.page(pages, index, date, DiskWait::None) {
            Some(page) => page?,
            None => return Ok(None),
        },
    };
    *current = Some((index, Arc::clone(&page)));
    let from = (part.from % PIECE_BYTES as u64) as usize;
    let range = from..from + part.bytes;
    // The page belongs to the version that was found, whose length limits every part.
    if range.end > page.len() {
        return Err(ErrorKind::InvalidData.into());
    }
    Ok(Some(Text { page, range }))
}

const fn index(part: Part) -> u64 {
    part.from / PIECE_BYTES as u64
}

/// Converts the error `WouldBlock` to `None`.
fn unless_blocked(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        done => done.map(Some),
    }
}

/// Maximum number of steps of one client in a turn, enough for some pieces of a file.
const MOST_STEPS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_page_is_at_least_half_of_it() {
        let page = Arc::new(vec![0; PIECE_BYTES]);
        let text = |range| Text { page: Arc::clone(&page), range };
        assert!(text(0..PIECE_BYTES).is_most_of_its_page());
        assert!(text(100..100 + PIECE_BYTES / 2).is_most_of_its_page());
        assert!(!text(0..PIECE_BYTES / 2 - 1).is_most_of_its_page());
        // A small file has a small page.
        let page = Arc::new(vec![0; 3_000]);
        assert!(Text { page, range: 0..3_000 }.is_most_of_its_page());
    }
}
