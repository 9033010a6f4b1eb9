//! One client from its first request to its last: requests in order, an answer to each, the
//! connection kept while both sides want it.
//!
//! Generic over the connection. Memory: a head and one piece of a file, or of a page of names; time: [`Limits`].

use std::io;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use super::answer::Answer;
use super::client::{Client, read_until};
use super::heads::{Heads, NoHead};
use super::limits::Limits;
use super::refusal::Refusal;
use super::request::{Method, Request};
use super::send::{Manner, Sent, send};
use super::site::Site;

/// What a conversation is held with.
pub(super) struct Host<'h> {
    pub(super) site: &'h Site,
    pub(super) limits: &'h Limits,
    /// Whether connections may be kept for further requests at the moment.
    pub(super) may_keep: &'h dyn Fn() -> bool,
    /// Told of each request, and how long the answer took.
    pub(super) log: &'h dyn Fn(What, Duration),
}

/// One request and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct What {
    /// Empty, as is the target, when no request could be read.
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) status: u16,
    /// Of the content that was sent.
    pub(super) bytes: u64,
    /// Whether all of the answer was written.
    pub(super) complete: bool,
}

/// Answers a client until it or we have enough. A connection that breaks is no error: clients do
/// that.
pub(super) fn converse(client: &mut impl Client, host: &Host<'_>) {
    let mut heads = Heads::default();
    let mut buffer = Vec::new();
    loop {
        let asked = heads.next(client, host.limits);
        let request = match asked {
            Ok(head) => Request::parse(head),
            Err(NoHead::Ended) => return,
            Err(NoHead::TooLong) => Err(Refusal::new(431, "the request is too long")),
            Err(NoHead::TooSlow) => Err(Refusal::new(408, "the request came too slowly")),
        };
        match answer(client, host, request, &mut buffer) {
            Next::Request => {}
            Next::Farewell => return farewell(client, host.limits),
            Next::Nothing => return,
        }
        if !heads.has_more() {
            // While it waits, a client holds no piece of a file.
            buffer = Vec::new();
        }
    }
}

/// What comes after an answer.
enum Next {
    Request,
    /// The end, said properly.
    Farewell,
    /// The connection is gone already.
    Nothing,
}

fn answer(
    client: &mut impl Client,
    host: &Host<'_>,
    request: Result<Request, Refusal>,
    buffer: &mut Vec<u8>,
) -> Next {
    let begin = Instant::now();
    let mut answer = match &request {
        Ok(request) => host.site.answer(request, SystemTime::now()),
        Err(refusal) => Answer::refusal(*refusal),
    };
    // An answer without a length ends with the connection, for who knows no chunks.
    let has_end = |request: &Request| !(request.is_old && answer.is_streamed());
    let may_stay = |request: &Request| request.is_persistent && has_end(request);
    let is_kept = request.as_ref().is_ok_and(may_stay) && (host.may_keep)();
    let manner = manner(request.as_ref().ok(), is_kept);
    let sent = send(client, &mut answer, manner, host.limits, buffer);
    (host.log)(what(request.ok(), &answer, &sent), begin.elapsed());
    match (sent.broken, is_kept) {
        (Some(_), _) => Next::Nothing,
        (None, true) => Next::Request,
        (None, false) => Next::Farewell,
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

fn what(request: Option<Request>, answer: &Answer, sent: &Sent) -> What {
    let (method, target) = match request {
        Some(Request { method: Method::Get, target, .. }) => ("GET", target),
        Some(Request { method: Method::Head, target, .. }) => ("HEAD", target),
        None => ("", String::new()),
    };
    let complete = sent.broken.is_none();
    What { method, target, status: answer.status, bytes: sent.bytes, complete }
}

/// Answers a client that has not been heard, without waiting for it.
pub(super) fn refuse(client: &mut impl Client, refusal: Refusal) -> What {
    let limits = Limits { piece: Duration::from_millis(1), least_rate: 0, ..Limits::default() };
    let mut answer = Answer::refusal(refusal);
    let sent = send(client, &mut answer, manner(None, false), &limits, &mut Vec::new());
    // It was told as much as it took.
    _ = client.finish();
    what(None, &answer, &sent)
}

/// Says that nothing more comes, and takes for a while what the client still sends: closing at once
/// would reset the connection, and the answer might be lost (RFC 9112 section 9.6).
fn farewell(client: &mut impl Client, limits: &Limits) {
    if client.finish().is_err() {
        return;
    }
    let deadline = Instant::now() + limits.linger;
    let mut ignored = [0; 4096];
    let mut more = || -> io::Result<usize> { read_until(client, &mut ignored, deadline) };
    while more().is_ok_and(|read| read > 0) {}
}

#[cfg(test)]
#[path = "conversation/tests.rs"]
mod tests;
