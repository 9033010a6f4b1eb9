//! An answer before it is sent: status, header fields and content.

use crate::listing::Listing;
use crate::refusal::{Refusal, phrase};

/// The answer to a request, before it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The header fields of this answer, in addition to the fields that every answer has.
    pub(crate) fields: Vec<(&'static str, String)>,
    pub(crate) content: Content,
}

/// The content that follows the header fields.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// The answer has neither content nor a length, because the client already has the file (status 304).
    Known,
    Text(String),
    /// The page of a directory that is longer than one piece. Its length is not known in advance.
    Listing(Listing),
    /// `bytes` bytes of the file that was found last, starting at offset `from`.
    Part {
        from: u64,
        bytes: u64,
    },
}

impl Answer {
    /// Creates the error page for `refusal`: its status, and the reason in one line.
    pub(crate) fn refusal(refusal: Refusal) -> Self {
        let Refusal { status, why } = refusal;
        let text = format!("{status} {}: {why}\n", phrase(status));
        let answer = Self::text(status, "text/plain; charset=utf-8", text);
        if status == 405 { answer.with("Allow", "GET, HEAD") } else { answer }
    }

    /// Creates an answer whose content is `text`, with the media type `kind`.
    pub(crate) fn text(status: u16, kind: &str, text: String) -> Self {
        Self::new(status, Content::Text(text)).with("Content-Type", kind)
    }

    /// Creates an answer with this status and content, and no further header fields.
    pub(crate) const fn new(status: u16, content: Content) -> Self {
        Self { status, fields: Vec::new(), content }
    }

    /// Returns the answer with an additional header field, which is appended.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// Returns `true` if the content is rendered while it is sent.
    pub(crate) const fn is_streamed(&self) -> bool {
        matches!(self.content, Content::Listing(_))
    }

    /// Returns the length of the content in bytes, as in the answer to a GET request; `None` if there is no
    /// content or its length is unknown.
    pub(crate) fn length(&self) -> Option<u64> {
        match &self.content {
            Content::Known | Content::Listing(_) => None,
            Content::Text(text) => Some(text.len() as u64),
            Content::Part { bytes, .. } => Some(*bytes),
        }
    }
}
