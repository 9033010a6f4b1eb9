//! A claim of the project, with a verdict from the measurements.

use rxo_demo::wrap::wrapped;
use serde::Serialize;

use crate::statement;

/// A claim of the project, with its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) claim: String,
    /// `true` if the claim holds here; `None` if no measurement decides it.
    pub(crate) holds: Option<bool>,
    /// The result here.
    pub(crate) found: String,
    /// `true` if the verdict was withdrawn because the machine was busy.
    #[serde(skip)]
    pub(crate) is_withheld: bool,
}

impl Verdict {
    pub(crate) fn new(claim: impl Into<String>, holds: Option<bool>, found: String) -> Self {
        Self { claim: claim.into(), holds, found, is_withheld: false }
    }

    /// Withdraws the verdict. The text of the result stays.
    pub(crate) fn withhold(&mut self) {
        self.is_withheld |= self.holds.take().is_some();
    }

    pub(crate) fn text(&self) -> String {
        let verdict = statement::verdict(self.holds, self.is_withheld);
        wrapped(&format!("{verdict}: {}. Here: {}", self.claim, self.found))
    }
}
