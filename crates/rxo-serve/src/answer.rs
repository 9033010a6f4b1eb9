//! An answer before it is sent: status, fields, and what follows them.

use crate::listing::Listing;
use crate::refusal::{Refusal, phrase};

/// What a client is to get.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Besides those that every answer has.
    pub(crate) fields: Vec<(&'static str, String)>,
    pub(crate) content: Content,
}

/// What follows the fields.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Nothing, and no length either: the client has it (304).
    Known,
    Text(String),
    /// The page of a directory that is longer than one piece. It has no length beforehand.
    Listing(Listing),
    /// `bytes` bytes of the file that was found last, starting at `from`.
    Part {
        from: u64,
        bytes: u64,
    },
}

impl Answer {
    /// A short page that says why not.
    pub(crate) fn refusal(refusal: Refusal) -> Self {
        let Refusal { status, why } = refusal;
        let text = format!("{status} {}: {why}\n", phrase(status));
        let answer = Self::text(status, "text/plain; charset=utf-8", text);
        if status == 405 { answer.with("Allow", "GET, HEAD") } else { answer }
    }

    /// An answer whose content is `text`, of the media type `kind`.
    pub(crate) fn text(status: u16, kind: &str, text: String) -> Self {
        Self::new(status, Content::Text(text)).with("Content-Type", kind)
    }

    /// An answer without fields of its own.
    pub(crate) const fn new(status: u16, content: Content) -> Self {
        Self { status, fields: Vec::new(), content }
    }

    /// Appends a field.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// Whether the content is rendered while it is sent.
    pub(crate) const fn is_streamed(&self) -> bool {
        matches!(self.content, Content::Listing(_))
    }

    /// How many bytes follow a GET's fields; `None` if nothing can follow, or the length is unknown.
    pub(crate) fn length(&self) -> Option<u64> {
        match &self.content {
            Content::Known | Content::Listing(_) => None,
            Content::Text(text) => Some(text.len() as u64),
            Content::Part { bytes, .. } => Some(*bytes),
        }
    }
}
