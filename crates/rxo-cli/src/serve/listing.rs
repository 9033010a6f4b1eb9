//! A directory as a page, piece by piece: its names in order, without ever holding all of them.
//!
//! A directory of many names makes a page of megabytes, and there may be hundreds of clients. So each
//! piece reads the directory again and keeps the names that come next: time instead of memory. Names that
//! come or go meanwhile are shown or not; none is shown twice.

use std::io;

use super::root::Folder;
use super::target::{Target, encoded};

/// What is still to be shown of a directory.
#[derive(Debug)]
pub(super) struct Listing {
    folder: Folder,
    has_parent: bool,
    title: String,
    /// The last name shown.
    after: Vec<u8>,
    shown: usize,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Begin,
    Names,
    Done,
}

impl Listing {
    /// All of `folder`, which `target` led to.
    pub(super) fn new(folder: Folder, target: &Target) -> Self {
        let (title, has_parent) = (escaped(&target.title()), target.has_parent());
        let progress = Progress::Begin;
        Self { folder, has_parent, title, after: Vec::new(), shown: 0, progress }
    }

    /// The same from its beginning.
    pub(super) fn again(self) -> Self {
        Self { after: Vec::new(), shown: 0, progress: Progress::Begin, ..self }
    }

    /// Whether the page has been given to its end.
    pub(super) fn is_done(&self) -> bool {
        self.progress == Progress::Done
    }

    /// Appends the next piece of the page, one that has [`LISTING_BYTES`](super::limits::LISTING_BYTES) at most, but for the
    /// title.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(super) fn next(&mut self, page: &mut Vec<u8>) -> io::Result<()> {
        if self.is_done() {
            return Ok(());
        }
        let found = self.folder.names_after(&self.after, |name| item(name).len())?;
        if self.progress == Progress::Begin {
            page.extend_from_slice(self.begin().as_bytes());
            self.progress = Progress::Names;
        }
        let left = MOST_NAMES - self.shown;
        for name in found.names.iter().take(left) {
            page.extend_from_slice(item(name).as_bytes());
        }
        let is_too_much = found.names.len() > left || found.names.len() == left && found.has_more;
        self.shown += found.names.len().min(left);
        if is_too_much || !found.has_more {
            let has_more = is_too_much || found.was_cut;
            page.extend_from_slice(end(has_more).as_bytes());
            self.progress = Progress::Done;
        } else if let Some(last) = found.names.into_iter().next_back() {
            self.after = last;
        }
        Ok(())
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

fn end(has_more: bool) -> &'static str {
    if has_more { "</ul>\n<p>There are more than these.\n" } else { "</ul>\n" }
}

fn item(name: &[u8]) -> String {
    let (plain, mark) = match name.strip_suffix(b"/") {
        Some(plain) => (plain, "/"),
        None => (name, ""),
    };
    let shown = escaped(&String::from_utf8_lossy(plain));
    // The dot keeps a name with a colon from being read as a scheme.
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

/// A page of more is for no reader.
const MOST_NAMES: usize = 10_000;

#[cfg(test)]
#[path = "listing/tests.rs"]
mod tests;
