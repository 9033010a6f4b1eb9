//! Renders a directory as a page of its names in order, piece by piece.
//!
//! The code is pure: the caller reads the directory once and passes the names. A page of many names would take
//! megabytes per client, so only one piece is rendered at a time. Clients share the names.

use std::sync::Arc;

use crate::limits::LISTING_BYTES;
use crate::names::Names;
use crate::target::{Target, encoded};

/// The part of a directory's page that was not rendered yet.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    names: Arc<Names>,
    /// The last name that was rendered; `None` before the first name.
    last: Option<Vec<u8>>,
    has_parent: bool,
    title: String,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Begin,
    Names,
    Done,
}

impl Listing {
    /// Creates the page that lists `names`, the names in the directory that the request named as `target`.
    pub(crate) fn new(names: Arc<Names>, target: &Target) -> Self {
        let (title, has_parent) = (escaped(&target.title()), target.has_parent());
        Self { names, last: None, has_parent, title, progress: Progress::Begin }
    }

    /// Returns `true` if the page fits into one piece. Renders names until they exceed a piece; allocates.
    pub(crate) fn is_short(&self) -> bool {
        let mut room = LISTING_BYTES;
        self.names.after(None).all(|name| takes(&mut room, item(name).len()))
    }

    /// Returns `true` if the whole page was rendered.
    pub(crate) fn is_done(&self) -> bool {
        self.progress == Progress::Done
    }

    /// Renders the next piece of the page: items of at most [`LISTING_BYTES`] together, or a single item.
    /// Returns an empty string after the end.
    pub(crate) fn next(&mut self) -> String {
        let mut page = match self.progress {
            Progress::Begin => self.begin(),
            Progress::Names => String::new(),
            Progress::Done => return String::new(),
        };
        let (mut room, mut last) = (LISTING_BYTES, None);
        let seen = self.last.take();
        for name in self.names.after(seen.as_deref()) {
            let item = item(name);
            if !takes(&mut room, item.len()) {
                self.last = last.map(<[u8]>::to_vec);
                self.progress = Progress::Names;
                return page;
            }
            page.push_str(&item);
            last = Some(name);
        }
        self.progress = Progress::Done;
        page.push_str(end(self.names.is_cut()));
        page
    }

    fn begin(&self) -> String {
        let title = &self.title;
        let up = if self.has_parent { "<li><a href=\"../\">../</a>\n" } else { "" };
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
             <h1>{title}</h1>\n<ul>\n{up}"
        )
    }
}

/// Subtracts `bytes` from the free space `room`, in bytes. Returns `false` if the space is too small. The
/// first item of a piece always fits.
fn takes(room: &mut usize, bytes: usize) -> bool {
    let is_first = *room == LISTING_BYTES;
    let fits = is_first || bytes <= *room;
    *room = room.saturating_sub(bytes);
    fits
}

fn end(has_more: bool) -> &'static str {
    if has_more { "</ul>\n<p>There are more than these.\n" } else { "</ul>\n" }
}

fn item(name: &[u8]) -> String {
    let (plain, mark) = match name.strip_suffix(b"/") {
        Some(plain) => (plain, "/"),
        None => (name, ""),
    };
    let shown = escaped(&String::from_utf8_lossy(plain));
    // The `./` prevents a name with a colon from being parsed as a URI scheme.
    format!("<li><a href=\"./{}{mark}\">{shown}{mark}</a>\n", encoded(plain))
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
#[path = "listing/tests.rs"]
mod tests;
