//! The conversation with one client, from its first request to its last: the server answers requests in order,
//! and keeps the connection as long as both sides permit.
//!
//! A conversation is a state machine without input or output: [`Conversation::next`] returns the next step. The
//! owner (the code that has the connection) performs the step and reports its result.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::answer::Answer;
use crate::drain::{Drain, Wait};
use crate::heads::{Heads, NoHead};
use crate::limits::Limits;
use crate::lookup::{Found, Lookup, Problem};
use crate::names::Names;
use crate::refusal::Refusal;
use crate::request::{Method, Request};
use crate::search::{FileReply, Need, Next, Search};
use crate::sending::{Due, Manner, Part, Sending};

/// A client's connection as a state machine.
///
/// # Examples
/// ```
/// # use std::time::{Instant, SystemTime};
/// use rxo_serve::{Conversation, Limits, Now, Problem, Step};
///
/// let now = Now { instant: Instant::now(), date: SystemTime::now(), may_stay: true };
/// let mut conversation = Conversation::new(Limits::default());
/// let mut says = &b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n"[..];
/// let mut received = Vec::new();
/// loop {
///     match conversation.next(now) {
///         Step::Read { .. } => conversation.received(std::mem::take(&mut says)),
///         Step::Find(_) => conversation.found(Err(Problem::Missing)),
///         Step::Write { bytes, .. } => {
///             received.extend_from_slice(bytes);
///             let all = bytes.len();
///             conversation.on_written(all);
///         }
///         Step::Answered(exchange) => assert_eq!(exchange.status, 404),
///         Step::Finish => {}
///         Step::Close => break,
///         other => unreachable!("no file is sent: {other:?}"),
///     }
/// }
/// assert!(received.starts_with(b"HTTP/1.1 404 Not Found\r\n"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Conversation {
    limits: Limits,
    heads: Heads,
    state: State,
    /// `true` if the connection broke or the file could not be read.
    is_broken: bool,
}

/// The time and the free capacity that a conversation needs for its next step.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// The monotonic time that deadlines refer to.
    pub instant: Instant,
    /// The time of day, for the field `Date` and the age of files.
    pub date: SystemTime,
    /// `true` if the server has capacity for idle clients. Otherwise the connection ends after the next
    /// answer.
    pub may_stay: bool,
}

/// The next action of a conversation's owner, and the function that reports its result.
///
/// If the connection breaks in any step, the owner calls [`Conversation::broken`]. A step with a deadline ends
/// at `until`: at this time the owner asks for the next step, without a report.
#[derive(Debug)]
pub enum Step<'c> {
    /// Read at least one byte and at most [`READ_BYTES`](crate::READ_BYTES); then call
    /// [`Conversation::received`].
    Read {
        /// The deadline for the first byte of the client.
        until: Instant,
    },
    /// Open a path, and keep the file or directory open; then call [`Conversation::found`].
    Find(Lookup),
    /// Read the names in the directory that was found last; then call [`Conversation::listed`].
    List,
    /// Write at least one byte of `bytes` and `part`; then call [`Conversation::on_written`].
    Write {
        /// The bytes to write first; may be empty if there is a part.
        bytes: &'c [u8],
        /// The part of the file that was found last, to be written after `bytes`; `None` if only `bytes` are
        /// written. If the file has changed since, call [`Conversation::broken`].
        part: Option<Part>,
        /// The deadline for the first written byte.
        until: Instant,
    },
    /// A request was answered, completely or only in part. The owner may close its files, and reports nothing.
    Answered(Exchange),
    /// If the number of written bytes that have not arrived at the client is known, report it with
    /// [`Conversation::in_flight_bytes`]. Then shut down sending, without discarding these bytes.
    Finish,
    /// Report the number of written bytes that have not arrived at the client, as in [`Step::Finish`]. If all
    /// bytes have arrived, or the connection is readable, read as in [`Step::Read`]; the conversation ignores
    /// the received bytes. Otherwise wait, at most until `until`, and ask for the next step.
    Drain {
        /// The deadline for the report.
        until: Instant,
    },
    /// Reset the connection: the client does not accept the rest of an answer. The owner reports nothing.
    Reset,
    /// Close the connection. This is the last step of the conversation.
    Close,
}

/// A request and the outcome of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The method of the request, `GET` or `HEAD`. Method and target are empty if no request could be parsed.
    pub method: &'static str,
    /// The request target as the client sent it.
    pub target: String,
    /// The HTTP status of the answer.
    pub status: u16,
    /// The number of content bytes that were written to the client.
    pub bytes: u64,
    /// `true` if the answer was written completely.
    pub is_complete: bool,
    /// The time from the end of the request to the end of the answer.
    pub took: Duration,
}

#[derive(Debug)]
enum State {
    /// The conversation waits for a request. `until` is the deadline, which is set when the wait begins.
    Waiting {
        until: Option<Instant>,
        has_begun: bool,
    },
    /// The conversation looks up the file of a request. `reply` is the result of the last lookup.
    Searching {
        request: Request,
        search: Search,
        reply: Option<FileReply>,
        begun: Instant,
    },
    /// The conversation writes an answer.
    Sending(Outgoing),
    /// The last answer was written, or the client sends no more requests.
    Finishing {
        may_speak: bool,
    },
    /// The conversation waits until the written bytes have arrived at the client.
    Draining(Drain),
    /// The conversation reads and ignores further bytes of the client. Closing at once would reset the
    /// connection, and the answer might be lost (RFC 9112, section 9.6).
    Lingering {
        until: Instant,
    },
    Over,
}

#[derive(Debug)]
struct Outgoing {
    sending: Sending,
    exchange: Exchange,
    /// `true` if the connection is kept after the answer.
    is_kept: bool,
    /// The time at which the request was received completely.
    begun: Instant,
}

/// An action for the owner: a [`Step`] without borrowed data.
enum Act {
    Read { until: Instant },
    Find(Lookup),
    List,
    Write { until: Instant },
    Answered(Exchange),
    Finish,
    Drain { until: Instant },
    Reset,
    Close,
}

const NO_REQUEST: Refusal =
    Refusal::new(400, "this is no HTTP request, and TLS is not spoken: write http://");

const WAITING: State = State::Waiting { until: None, has_begun: false };

impl Conversation {
    /// Creates the conversation with a client that has just connected.
    pub fn new(limits: Limits) -> Self {
        Self { limits, heads: Heads::default(), state: WAITING, is_broken: false }
    }

    /// Creates the conversation with a client for which there is no capacity. The client gets status 503 with
    /// the sentence `why`, and its bytes are ignored. The client has [`Limits::linger`] to accept the answer;
    /// after that the connection stays open for the same duration.
    pub fn refused(why: &'static str, limits: &Limits, now: Now) -> Self {
        // The answer is short, so its length adds no time.
        let least_rate = u64::MAX;
        let limits = Limits { piece: limits.linger, least_rate, ..*limits };
        let mut turned_away = Self::new(limits);
        turned_away.send(None, Answer::refusal(Refusal::new(503, why)), now.instant, now);
        turned_away
    }

    /// Returns the next step at the time `now`. Until the result of the step is reported or a deadline has
    /// passed, further calls return the same step.
    pub fn next(&mut self, now: Now) -> Step<'_> {
        let act = loop {
            if let Some(act) = self.advance(now) {
                break act;
            }
        };
        match act {
            Act::Read { until } => Step::Read { until },
            Act::Find(lookup) => Step::Find(lookup),
            Act::List => Step::List,
            Act::Write { until } => {
                let (bytes, part) = self.unwritten();
                Step::Write { bytes, part, until }
            }
            Act::Answered(exchange) => Step::Answered(exchange),
            Act::Finish => Step::Finish,
            Act::Drain { until } => Step::Drain { until },
            Act::Reset => Step::Reset,
            Act::Close => Step::Close,
        }
    }

    /// Reports the result of [`Step::Read`]; an empty slice means that the client has closed its sending side.
    pub fn received(&mut self, bytes: &[u8]) {
        match self.state {
            State::Waiting { .. } if !bytes.is_empty() => self.heads.received(bytes),
            State::Waiting { .. } => self.state = State::Finishing { may_speak: false },
            State::Lingering { .. } if bytes.is_empty() => self.state = State::Over,
            State::Draining(ref drain) if bytes.is_empty() && drain.is_complete() => {
                self.state = State::Over;
            }
            _ => {}
        }
    }

    /// Reports the number of written bytes that have not arrived at the client. An owner that cannot know the
    /// number need not call this.
    pub fn in_flight_bytes(&mut self, bytes: u64) {
        if let State::Draining(drain) = &mut self.state {
            drain.set_in_flight(bytes);
        }
    }

    /// Reports the result of [`Step::Find`].
    pub fn found(&mut self, result: Result<Found, Problem>) {
        self.on_reply(FileReply::Found(result));
    }

    /// Reports the result of [`Step::List`].
    pub fn listed(&mut self, result: Result<Arc<Names>, Problem>) {
        self.on_reply(FileReply::Names(result));
    }

    /// Reports the result of [`Step::Write`]: the number of bytes written.
    pub fn on_written(&mut self, bytes: usize) {
        if let State::Sending(outgoing) = &mut self.state {
            outgoing.sending.on_written(bytes);
        }
    }

    /// Reports that a step failed. The conversation ends without a further answer.
    pub fn broken(&mut self) {
        self.is_broken = true;
    }

    fn on_reply(&mut self, new: FileReply) {
        if let State::Searching { reply, .. } = &mut self.state {
            *reply = Some(new);
        }
    }

    fn unwritten(&self) -> (&[u8], Option<Part>) {
        match &self.state {
            State::Sending(outgoing) => outgoing.sending.unwritten(),
            _ => (&[], None),
        }
    }

    /// Carries out one transition. Returns the action that the owner must take; `None` if another transition
    /// must follow at once.
    fn advance(&mut self, now: Now) -> Option<Act> {
        match mem::replace(&mut self.state, State::Over) {
            State::Sending(outgoing) => Some(self.send_on(outgoing, now.instant)),
            _ if self.is_broken => Some(Act::Close),
            State::Waiting { until, has_begun } => self.wait(until, has_begun, now),
            State::Searching { request, search, reply: Some(reply), begun } => {
                match search.with_reply(reply, &request, now.date) {
                    Next::Search(search) => self.search(request, search, begun),
                    Next::Answer(answer) => self.send(Some(request), answer, begun, now),
                }
                None
            }
            State::Searching { request, search, reply: None, begun } => {
                let act = match search.need() {
                    Need::Find(lookup) => Act::Find(lookup),
                    Need::List => Act::List,
                };
                self.search(request, search, begun);
                Some(act)
            }
            State::Finishing { may_speak } => {
                self.heads.clear();
                self.state = State::Draining(Drain::new(may_speak));
                Some(Act::Finish)
            }
            State::Draining(drain) => self.drain(drain, now.instant),
            State::Lingering { until } if now.instant < until => {
                self.state = State::Lingering { until };
                Some(Act::Read { until })
            }
            State::Lingering { .. } | State::Over => Some(Act::Close),
        }
    }

    fn wait(&mut self, until: Option<Instant>, has_begun: bool, now: Now) -> Option<Act> {
        let request = match self.heads.next(self.limits.head_bytes) {
            Ok(Some(head)) => Some(Request::parse(head)),
            Ok(None) => None,
            Err(NoHead::TooLong) => Some(Err(Refusal::new(431, "the request is too long"))),
            // A TLS client would wait for an answer until its request timed out.
            Err(NoHead::NoRequest) => Some(Err(NO_REQUEST)),
        };
        if let Some(request) = request {
            self.answer(request, now);
            return None;
        }
        let begins = self.heads.has_more();
        let until = match until {
            // Only once: a client that sends nothing but empty lines gets no more time than a silent one.
            _ if begins && !has_begun => now.instant + self.limits.head,
            Some(until) => until,
            None => now.instant + self.limits.idle,
        };
        if now.instant < until {
            self.state = State::Waiting { until: Some(until), has_begun: has_begun || begins };
            return Some(Act::Read { until });
        }
        if begins {
            self.answer(Err(Refusal::new(408, "the request came too slowly")), now);
        } else {
            self.state = State::Finishing { may_speak: false };
        }
        None
    }

    fn drain(&mut self, mut drain: Drain, now: Instant) -> Option<Act> {
        match drain.next(&self.limits, now) {
            Wait::Late => Some(Act::Reset),
            Wait::Until(until) => {
                self.state = State::Draining(drain);
                Some(Act::Drain { until })
            }
            Wait::Over => {
                if drain.may_speak {
                    self.state = State::Lingering { until: now + self.limits.linger };
                }
                None
            }
        }
    }

    fn answer(&mut self, request: Result<Request, Refusal>, now: Now) {
        match request {
            Ok(request) => match Search::of(&request.target) {
                Ok(search) => self.search(request, search, now.instant),
                Err(refusal) => {
                    self.send(Some(request), Answer::refusal(refusal), now.instant, now);
                }
            },
            Err(refusal) => self.send(None, Answer::refusal(refusal), now.instant, now),
        }
    }

    fn search(&mut self, request: Request, search: Search, begun: Instant) {
        self.state = State::Searching { request, search, reply: None, begun };
    }

    /// Starts to send `answer` to `request`, which is `None` if the request could not be parsed.
    fn send(&mut self, request: Option<Request>, answer: Answer, begun: Instant, now: Now) {
        // For a client without chunked encoding, an answer without a length ends with the connection.
        let has_end = |request: &Request| !(request.is_old && answer.is_streamed());
        let wants_more = |request: &Request| request.is_persistent && has_end(request);
        let is_kept = request.as_ref().is_some_and(wants_more) && now.may_stay;
        let manner = manner(request.as_ref(), is_kept);
        let exchange = exchange(request, answer.status);
        let sending = Sending::new(answer, manner, now.date, now.instant);
        self.state = State::Sending(Outgoing { sending, exchange, is_kept, begun });
    }

    fn send_on(&mut self, mut outgoing: Outgoing, now: Instant) -> Act {
        let due = if self.is_broken { Due::Late } else { outgoing.sending.due(&self.limits, now) };
        let act = match due {
            Due::Write { until } => Act::Write { until },
            Due::Nothing | Due::Late => {
                let is_complete = due == Due::Nothing;
                self.state = match (is_complete, outgoing.is_kept) {
                    (true, true) => WAITING,
                    (true, false) => State::Finishing { may_speak: true },
                    (false, _) => State::Over,
                };
                return Act::Answered(outgoing.end(is_complete, now));
            }
        };
        self.state = State::Sending(outgoing);
        act
    }
}

impl Outgoing {
    fn end(self, is_complete: bool, now: Instant) -> Exchange {
        let took = now.saturating_duration_since(self.begun);
        Exchange { bytes: self.sending.bytes(), is_complete, took, ..self.exchange }
    }
}

fn manner(request: Option<&Request>, is_kept: bool) -> Manner {
    let is_old = request.is_some_and(|request| request.is_old);
    Manner {
        is_head: request.is_some_and(|request| request.method == Method::Head),
        connection: match (is_kept, is_old) {
            (false, _) => Some("close"),
            (true, true) => Some("keep-alive"),
            (true, false) => None,
        },
        knows_chunks: !is_old,
    }
}

/// Creates the record of a request and its answer, which has not been sent yet. `request` is `None` if no
/// request could be parsed.
fn exchange(request: Option<Request>, status: u16) -> Exchange {
    let (method, target) = match request {
        Some(Request { method: Method::Get, target, .. }) => ("GET", target),
        Some(Request { method: Method::Head, target, .. }) => ("HEAD", target),
        None => ("", String::new()),
    };
    Exchange { method, target, status, bytes: 0, is_complete: false, took: Duration::ZERO }
}

#[cfg(test)]
mod tests;
