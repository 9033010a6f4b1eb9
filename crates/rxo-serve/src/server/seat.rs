//! One client of the server: its steps, until it must wait.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::conversation::{Conversation, Exchange, Now, Step};
use crate::files::{Errand, Job, Opened, Page, Pages, Patience, Readers, Reply, Root};
use crate::limits::{PIECE_BYTES, READ_BYTES};
use crate::sending::Part;

/// A connection with a client. No call waits: one that would fails with [`ErrorKind::WouldBlock`], and the
/// owner of the server then says when it should be tried again ([`Server::ready`](super::Server::ready)).
pub trait Client {
    /// Reads what has arrived; 0 is the end.
    ///
    /// # Errors
    /// If the connection broke, or nothing has arrived.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize>;

    /// Writes `bytes`, and behind them `text`, which stays the same for as long as anybody has it. Returns how
    /// many bytes were taken of both. Whoever keeps `text` should look at [`Text::is_most_of_its_page`].
    ///
    /// # Errors
    /// If the connection broke, or there is no room.
    fn write(&mut self, bytes: &[u8], text: Option<&Text>) -> io::Result<usize>;

    /// How many bytes were written that the client does not have yet; 0 if that cannot be known. As long as it is not
    /// 0 at the end, the client keeps its place, and is asked again every [`Limits::linger`](crate::Limits::linger).
    fn on_its_way(&mut self) -> u64 {
        0
    }

    /// Sends nothing more; what was written still arrives.
    ///
    /// # Errors
    /// If the connection broke.
    fn finish(&mut self) -> io::Result<()>;

    /// Breaks the connection: what the client has is not the whole answer.
    fn reset(&mut self);
}

/// A part of a page.
#[derive(Clone, Debug)]
pub struct Text {
    page: Page,
    range: Range<usize>,
}

impl Text {
    /// Whether it is at least half of its page. While any of it is kept, so is all of its page: a client could
    /// make a connection keep a page for each of many small parts. A smaller part should be copied.
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

/// A client and everything about it.
pub(super) struct Seat<'c> {
    client: Box<dyn Client + 'c>,
    pub(super) peer: SocketAddr,
    conversation: Conversation,
    /// What it has open; `None` while a reader has it, until `errand`.
    opened: Option<Opened>,
    /// When the reader must be done.
    errand: Option<Instant>,
    /// The page of this answer that it sends now, and its number; not kept while the client is waited for.
    page: Option<(u64, Page)>,
    /// Its entry among the deadlines.
    pub(super) deadline: Option<Instant>,
    /// Whether it is in the queue.
    pub(super) is_queued: bool,
    /// Whether it has one of its address's places.
    pub(super) has_place: bool,
}

/// What seats share while they are driven.
pub(super) struct Shared {
    pub(super) root: Arc<Root>,
    pub(super) pages: Pages,
    pub(super) readers: Readers,
    /// The longest errand.
    pub(super) patience: Duration,
    pub(super) exchanges: Vec<(SocketAddr, Exchange)>,
    pub(super) scratch: Box<[u8; READ_BYTES]>,
}

/// Why a seat stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// The client or a reader must do something, until then; or only that time is waited for.
    Until(Instant),
    /// Others had to wait for long enough.
    Turn,
    /// It is over.
    Over,
}

/// What a step leads to.
type Progress = io::Result<Option<Rest>>;

impl<'c> Seat<'c> {
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
            errand: None,
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

    /// Takes steps until the client must be waited for, or others had to wait long enough.
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
                // An interrupted call is made again.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.conversation.broken(),
            }
        }
        // What a slow client does not take costs no memory here.
        self.page = None;
        rest
    }

    fn step(&mut self, token: u64, shared: &mut Shared, now: Now) -> Progress {
        // Whatever a client does, it must wait for its own errand.
        let Some(opened) = &mut self.opened else { return Ok(self.wait_for_reader(now.instant)) };
        let errand = match self.conversation.next(now) {
            Step::Read { until } => {
                let read = unless_blocked(self.client.read(&mut shared.scratch[..]))?;
                let Some(bytes) = read else { return Ok(Some(Rest::Until(until))) };
                self.conversation.received(&shared.scratch[..bytes]);
                return Ok(None);
            }
            Step::Write { bytes, part, until } => {
                if part.is_some()
                    && let Some(rest) = opened.settles_in(now.date)
                {
                    return Ok(Some(Rest::Until(until.min(now.instant + rest))));
                }
                let pages = &mut shared.pages;
                let text = part.map(|part| text(opened, &mut self.page, pages, part, now.date));
                match text.transpose()? {
                    Some(None) => Errand::Page(part.map_or(0, index)),
                    text => {
                        let written = self.client.write(bytes, text.flatten().as_ref());
                        let Some(bytes) = unless_blocked(written)? else {
                            return Ok(Some(Rest::Until(until)));
                        };
                        if bytes == 0 {
                            return Err(ErrorKind::WriteZero.into());
                        }
                        self.conversation.wrote(bytes);
                        return Ok(None);
                    }
                }
            }
            Step::Find(lookup) => match opened.find(&shared.root, &lookup, Patience::None) {
                Some(found) => {
                    self.conversation.found(found);
                    return Ok(None);
                }
                None => Errand::Find(lookup),
            },
            Step::List => Errand::List,
            Step::Answered(exchange) => {
                opened.close();
                // The next answer may be of another file, whose pages have the same numbers.
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
        Ok(self.send_reader(token, errand, shared, now.instant))
    }

    fn send_reader(
        &mut self,
        token: u64,
        errand: Errand,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Rest> {
        let opened = self.opened.take().unwrap_or_default();
        if let Err(job) = shared.readers.send(Job { token, opened, errand }) {
            self.opened = Some(job.opened);
            self.give_up();
            return None;
        }
        let until = now + shared.patience;
        self.errand = Some(until);
        Some(Rest::Until(until))
    }

    /// Sends nothing more, after a note of what is on its way.
    fn finish(&mut self) -> Progress {
        self.conversation.on_its_way(self.client.on_its_way());
        self.client.finish().map(|()| None)
    }

    /// Waits until what was written has arrived, and ignores what the client says meanwhile.
    fn drain(&mut self, shared: &mut Shared, until: Instant) -> Progress {
        let bytes = self.client.on_its_way();
        self.conversation.on_its_way(bytes);
        match unless_blocked(self.client.read(&mut shared.scratch[..]))? {
            // An end is read again and again.
            Some(0) | None if bytes > 0 => return Ok(Some(Rest::Until(until))),
            Some(read) => self.conversation.received(&shared.scratch[..read]),
            None => {}
        }
        Ok(None)
    }

    fn wait_for_reader(&mut self, now: Instant) -> Option<Rest> {
        if let Some(until) = self.errand.filter(|until| now < *until) {
            return Some(Rest::Until(until));
        }
        // What the reader has open comes back to nobody.
        self.opened = Some(Opened::default());
        self.give_up();
        None
    }

    /// The disk does not answer.
    fn give_up(&mut self) {
        self.client.reset();
        self.conversation.broken();
    }

    /// Takes what a reader brings.
    pub(super) fn brought(
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

/// The text of `part`; `None` if a reader must bring its page.
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
        None => match opened.page(pages, index, date, Patience::None) {
            Some(page) => page?,
            None => return Ok(None),
        },
    };
    *current = Some((index, Arc::clone(&page)));
    let from = (part.from % PIECE_BYTES as u64) as usize;
    let range = from..from + part.bytes;
    // The page is of the version that was found, and has its length.
    if range.end > page.len() {
        return Err(ErrorKind::InvalidData.into());
    }
    Ok(Some(Text { page, range }))
}

const fn index(part: Part) -> u64 {
    part.from / PIECE_BYTES as u64
}

/// `None` if the call would block.
fn unless_blocked(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        done => done.map(Some),
    }
}

/// One client's steps in a row: some pieces of a file.
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
        // A small file is a small page.
        let page = Arc::new(vec![0; 3_000]);
        assert!(Text { page, range: 0..3_000 }.is_most_of_its_page());
    }
}
