//! A claim of our own, held against what was measured.

use rxo_demo::wrap::wrapped;
use serde::Serialize;

use crate::statement;

/// One claim, held against what was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) claim: String,
    /// True if the statement holds here; `None` if nothing was measured that decides it.
    pub(crate) holds: Option<bool>,
    /// The result here.
    pub(crate) found: String,
    /// True if the verdict was taken back, because the machine was busy.
    #[serde(skip)]
    pub(crate) is_withheld: bool,
}

impl Verdict {
    pub(crate) fn new(claim: impl Into<String>, holds: Option<bool>, found: String) -> Self {
        Self { claim: claim.into(), holds, found, is_withheld: false }
    }

    /// Takes the verdict back. What was found stays.
    pub(crate) fn withhold(&mut self) {
        self.is_withheld |= self.holds.take().is_some();
    }

    pub(crate) fn text(&self) -> String {
        let verdict = statement::verdict(self.holds, self.is_withheld);
        wrapped(&format!("{verdict}: {}. Here: {}", self.claim, self.found))
    }
}
