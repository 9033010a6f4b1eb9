//! Finds the answer to a request, with one request to the file system at a time. Pure and total.
//!
//! A [`Search`] returns the lookup that it needs ([`Search::need`]), receives the result
//! ([`Search::with_reply`]), and becomes the answer or the next search: first for the target, then for the
//! index page of a directory, then for the directory's names.

use std::sync::Arc;
use std::time::SystemTime;

use crate::answer::{Answer, Content};
use crate::conditions::{Outcome, Version, outcome};
use crate::listing::Listing;
use crate::lookup::{Facts, Found, Lookup, Problem};
use crate::names::Names;
use crate::refusal::{FORBIDDEN, Refusal};
use crate::request::Request;
use crate::target::Target;
use crate::types;

/// A request whose answer requires a lookup in the file system.
#[derive(Debug)]
pub(crate) struct Search {
    target: Target,
    stage: Stage,
}

/// The next lookup of a search in the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The search looks up the file or directory that the target names.
    Target,
    /// The search looks up the index page in the directory.
    Index,
    /// The search reads the names in the directory, which has no index page.
    Names,
}

/// A question of a search to the file system.
#[derive(Debug)]
pub(crate) enum Need {
    Find(Lookup),
    /// Read the names in the directory that was found last.
    List,
}

/// The reply of the file system to a [`Need`] of a search.
#[derive(Debug)]
pub(crate) enum FileReply {
    Found(Result<Found, Problem>),
    Names(Result<Arc<Names>, Problem>),
}

/// The result of processing a reply of the file system: the answer, or the next search.
#[derive(Debug)]
pub(crate) enum Next {
    Search(Search),
    Answer(Answer),
}

impl Search {
    /// Creates the search for the request target `target`.
    ///
    /// # Errors
    /// Returns the answer to send if the target is not a path that can be served.
    pub(crate) fn of(target: &str) -> Result<Self, Refusal> {
        Ok(Self { target: Target::parse(target)?, stage: Stage::Target })
    }

    /// Returns the lookup in the file system that the search needs next.
    pub(crate) fn need(&self) -> Need {
        let path = self.target.relative();
        match self.stage {
            Stage::Target => Need::Find(Lookup { path, is_folder: self.target.is_folder }),
            Stage::Index => Need::Find(Lookup { path: path.join(INDEX), is_folder: false }),
            Stage::Names => Need::List,
        }
    }

    /// Processes the file system's reply to [`Search::need`]. Returns the answer, or the search that
    /// continues. `now` determines the age of a file.
    pub(crate) fn with_reply(self, reply: FileReply, request: &Request, now: SystemTime) -> Next {
        let stage = self.stage;
        let next = match (stage, reply) {
            (Stage::Target, FileReply::Found(found)) => self.at_target(found, request, now),
            (Stage::Index, FileReply::Found(found)) => self.at_index(found, request, now),
            (Stage::Names, FileReply::Names(names)) => self.listing(names),
            // The reply does not belong to this lookup.
            (_, FileReply::Found(_) | FileReply::Names(_)) => Err(Problem::Unreadable.into()),
        };
        next.unwrap_or_else(|refusal| Next::Answer(Answer::refusal(refusal)))
    }

    fn at_target(
        self,
        found: Result<Found, Problem>,
        request: &Request,
        now: SystemTime,
    ) -> Result<Next, Refusal> {
        match found? {
            Found::File(file) => {
                let kind = types::of(self.target.name().unwrap_or(b""));
                Ok(Next::Answer(document(file, kind, request, now)))
            }
            Found::Folder if !self.target.is_folder => Ok(Next::Answer(redirection(&self.target))),
            Found::Folder => Ok(Next::Search(Self { stage: Stage::Index, ..self })),
            Found::Other => Err(FORBIDDEN),
        }
    }

    fn at_index(
        self,
        found: Result<Found, Problem>,
        request: &Request,
        now: SystemTime,
    ) -> Result<Next, Refusal> {
        match found {
            Ok(Found::File(file)) => {
                Ok(Next::Answer(document(file, types::of(INDEX.as_bytes()), request, now)))
            }
            Ok(Found::Folder | Found::Other) | Err(Problem::Missing) => {
                Ok(Next::Search(Self { stage: Stage::Names, ..self }))
            }
            Err(problem) => Err(problem.into()),
        }
    }

    /// Returns the answer with the page of a directory. A page of one piece has a known length; a longer page
    /// is rendered while it is sent.
    fn listing(&self, names: Result<Arc<Names>, Problem>) -> Result<Next, Refusal> {
        let mut listing = Listing::new(names?, &self.target);
        let content = if listing.is_short() {
            Content::Text(listing.next())
        } else {
            Content::Listing(listing)
        };
        let answer = Answer::new(200, content).with("Content-Type", "text/html; charset=utf-8");
        Ok(Next::Answer(answer))
    }
}

/// Returns the redirection to the URL of a directory with a trailing `/`, without which relative links in the
/// directory's page would be wrong.
fn redirection(target: &Target) -> Answer {
    let url = target.folder_url();
    let text = format!("This is a directory: {url}\n");
    Answer::text(301, "text/plain; charset=utf-8", text).with("Location", url)
}

fn document(file: Facts, kind: &str, request: &Request, now: SystemTime) -> Answer {
    let version = Version::new(&file, now);
    let bytes = version.bytes;
    let part = |status, from, bytes| {
        Answer::new(status, Content::Part { from, bytes }).with("Content-Type", kind)
    };
    let answer = match outcome(request.method, &request.conditions, &version) {
        Outcome::Whole => part(200, 0, bytes),
        Outcome::Part { from, bytes: of_these } => {
            let last = from + of_these - 1;
            let range = format!("bytes {from}-{last}/{bytes}");
            part(206, from, of_these).with("Content-Range", range)
        }
        Outcome::NotModified => Answer::new(304, Content::Known),
        Outcome::NotThatVersion => {
            return Answer::refusal(Refusal::new(412, "the file is another version"));
        }
        Outcome::NoSuchRange => {
            let refused = Answer::refusal(Refusal::new(416, "the range is behind the end"));
            return refused.with("Content-Range", format!("bytes */{bytes}"));
        }
    };
    answer
        .with("ETag", version.tag)
        .with("Last-Modified", httpdate::fmt_http_date(version.modified))
        .with("Accept-Ranges", "bytes")
}

const INDEX: &str = "index.html";

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    const FILE: Found = Found::File(Facts { bytes: 5, changed: UNIX_EPOCH });

    /// Returns the status of a target whose lookups have these results, and the paths that it requested.
    fn answered(target: &str, results: &[Result<Found, Problem>]) -> (u16, Vec<String>) {
        let head = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        let request = Request::parse(head.as_bytes()).unwrap();
        let mut search = Search::of(target).unwrap();
        let (mut results, mut asked) = (results.iter(), Vec::new());
        loop {
            let reply = match search.need() {
                Need::Find(lookup) => {
                    asked.push(lookup.path.to_string_lossy().into_owned());
                    FileReply::Found(*results.next().unwrap())
                }
                Need::List => FileReply::Names(Ok(Arc::default())),
            };
            match search.with_reply(reply, &request, SystemTime::now()) {
                Next::Search(next) => search = next,
                Next::Answer(answer) => return (answer.status, asked),
            }
        }
    }

    #[test]
    fn what_is_found_decides() {
        use Problem::{Busy, Forbidden, Missing, Unreadable};
        type Row<'r> = (&'r str, &'r [Result<Found, Problem>], u16, &'r [&'r str]);
        let rows: [Row<'_>; 12] = [
            ("/a", &[Ok(FILE)], 200, &["a"]),
            ("/a", &[Ok(Found::Folder)], 301, &["a"]),
            ("/a", &[Ok(Found::Other)], 403, &["a"]),
            ("/a", &[Err(Missing)], 404, &["a"]),
            ("/a", &[Err(Busy)], 503, &["a"]),
            ("/a", &[Err(Unreadable)], 500, &["a"]),
            ("/a/", &[Ok(Found::Folder), Ok(FILE)], 200, &["a", "a/index.html"]),
            ("/a/", &[Ok(Found::Folder), Err(Missing)], 200, &["a", "a/index.html"]),
            ("/a/", &[Ok(Found::Folder), Ok(Found::Folder)], 200, &["a", "a/index.html"]),
            ("/a/", &[Ok(Found::Folder), Ok(Found::Other)], 200, &["a", "a/index.html"]),
            ("/a/", &[Ok(Found::Folder), Err(Forbidden)], 403, &["a", "a/index.html"]),
            ("/", &[Ok(Found::Folder), Err(Missing)], 200, &[".", "./index.html"]),
        ];
        for (target, results, status, asked) in rows {
            let expected = (status, asked.iter().map(|&path| path.to_owned()).collect());
            assert_eq!(answered(target, results), expected, "{target} {results:?}");
        }
    }

    #[test]
    fn a_reply_to_another_question_is_our_fault() {
        let request = Request::parse(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let reply = FileReply::Names(Ok(Arc::default()));
        let next = Search::of("/").unwrap().with_reply(reply, &request, SystemTime::now());
        assert!(matches!(next, Next::Answer(Answer { status: 500, .. })));
    }
}
