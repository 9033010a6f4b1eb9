//! What a request gets: the directory's files as answers. Reads the file system, sends nothing.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::answer::{Answer, Content};
use super::conditions::{Outcome, Version, outcome};
use super::listing::Listing;
use super::refusal::{FORBIDDEN, NOT_FOUND, Refusal};
use super::request::Request;
use super::root::{Document, Folder, Found, Root};
use super::target::Target;
use super::types;

/// A directory as a site.
#[derive(Debug)]
pub(super) struct Site {
    root: Root,
}

impl Site {
    pub(super) const fn new(root: Root) -> Self {
        Self { root }
    }

    /// The answer to `request` at the time `now`.
    pub(super) fn answer(&self, request: &Request, now: SystemTime) -> Answer {
        self.found(request, now).unwrap_or_else(Answer::refusal)
    }

    fn found(&self, request: &Request, now: SystemTime) -> Result<Answer, Refusal> {
        let target = Target::parse(&request.target)?;
        match self.find(&target.relative(), target.is_folder)? {
            Found::File(file) => {
                Ok(document(file, types::of(target.name().unwrap_or(b"")), request, now))
            }
            Found::Folder(_) if !target.is_folder => Ok(elsewhere(&target)),
            Found::Folder(folder) => self.folder(folder, &target, request, now),
            Found::Other => Err(FORBIDDEN),
        }
    }

    fn find(&self, relative: &Path, is_folder: bool) -> Result<Found, Refusal> {
        self.root.find(relative, is_folder).map_err(|error| Refusal::from(&error))
    }

    /// Its index page, if it has one, else its names.
    fn folder(
        &self,
        folder: Folder,
        target: &Target,
        request: &Request,
        now: SystemTime,
    ) -> Result<Answer, Refusal> {
        match self.find(&target.relative().join(INDEX), false) {
            Ok(Found::File(file)) => Ok(document(file, types::of(INDEX.as_bytes()), request, now)),
            Err(refusal) if refusal != NOT_FOUND => Err(refusal),
            _ => listing(folder, target).map_err(|error| Refusal::from(&error)),
        }
    }
}

/// A page that is one piece has a length; a longer one is made while it is sent.
fn listing(folder: Folder, target: &Target) -> io::Result<Answer> {
    let (mut first, mut listing) = (Vec::new(), Listing::new(folder, target));
    listing.next(&mut first)?;
    let content = if listing.is_done() {
        Content::Text(String::from_utf8_lossy(&first).into_owned())
    } else {
        Content::Listing(listing.again())
    };
    let answer = Answer { status: 200, fields: Vec::new(), content };
    Ok(answer.with("Content-Type", "text/html; charset=utf-8"))
}

/// The address of a directory ends in `/`, or links in it would lead elsewhere.
fn elsewhere(target: &Target) -> Answer {
    let url = target.folder_url();
    let text = format!("This is a directory: {url}\n");
    Answer::text(301, "text/plain; charset=utf-8", text).with("Location", url)
}

fn document(file: Document, kind: &str, request: &Request, now: SystemTime) -> Answer {
    let version = Version::new(file.inode, file.bytes, file.changed, now);
    let bytes = version.bytes;
    let part = |status, from, bytes| {
        let content = Content::Part { file: file.file, from, bytes };
        Answer { status, fields: Vec::new(), content }.with("Content-Type", kind)
    };
    let answer = match outcome(request.method, &request.conditions, &version) {
        Outcome::Whole => part(200, 0, bytes),
        Outcome::Part { from, bytes: of_these } => {
            let last = from + of_these - 1;
            let range = format!("bytes {from}-{last}/{bytes}");
            part(206, from, of_these).with("Content-Range", range)
        }
        Outcome::NotModified => Answer { status: 304, fields: Vec::new(), content: Content::Known },
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
