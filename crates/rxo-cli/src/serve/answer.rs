//! An answer before it is sent: status, fields, and what follows them.

use std::fs::File;

use super::listing::Listing;
use super::refusal::{Refusal, phrase};

/// What a client is to get.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Besides those that every answer has.
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) content: Content,
}

/// What follows the fields.
#[derive(Debug)]
pub(super) enum Content {
    /// Nothing, and no length either: the client has it (304).
    Known,
    Text(String),
    /// The names of a directory, more than one piece of a page: its length is not known before.
    Listing(Listing),
    /// So many bytes of a file from an offset on.
    Part {
        file: File,
        from: u64,
        bytes: u64,
    },
}

impl Answer {
    /// A short page that says why not.
    pub(super) fn refusal(refusal: Refusal) -> Self {
        let Refusal { status, why } = refusal;
        let text = format!("{status} {}: {why}\n", phrase(status));
        let answer = Self::text(status, "text/plain; charset=utf-8", text);
        if status == 405 { answer.with("Allow", "GET, HEAD") } else { answer }
    }

    /// A text of our own.
    pub(super) fn text(status: u16, kind: &str, text: String) -> Self {
        let answer = Self { status, fields: Vec::new(), content: Content::Text(text) };
        answer.with("Content-Type", kind)
    }

    /// The same with one field more.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// Whether its content is made while it is sent.
    pub(super) const fn is_streamed(&self) -> bool {
        matches!(self.content, Content::Listing(_))
    }

    /// How many bytes follow a GET's fields; `None` where nothing can follow, or nobody knows.
    pub(super) fn length(&self) -> Option<u64> {
        match &self.content {
            Content::Known | Content::Listing(_) => None,
            Content::Text(text) => Some(text.len() as u64),
            Content::Part { bytes, .. } => Some(*bytes),
        }
    }
}
