//! A claim of our own, held against what was measured.

use serde::Serialize;

use crate::wrap::wrapped;

/// One claim, held against what was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Verdict {
    pub(super) claim: String,
    /// Whether it is so here; `None` when there is nothing to tell it from.
    pub(super) holds: Option<bool>,
    /// What was found here.
    pub(super) found: String,
}

impl Verdict {
    pub(super) fn text(&self) -> String {
        let verdict = match self.holds {
            Some(true) => "holds",
            Some(false) => "DOES NOT HOLD",
            None => "not measured",
        };
        wrapped(&format!("{verdict}: {}. Here: {}", self.claim, self.found))
    }
}
