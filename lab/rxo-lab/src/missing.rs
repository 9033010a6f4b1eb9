//! Collects the reasons why parts of an experiment could not be measured. The other parts continue, and the
//! report prints the reasons.

use std::cell::RefCell;

use anyhow::Result;

/// The treatment of a measurement that fails.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The experiment ends.
    Ends,
    /// The results name the reason, and the next measurement follows.
    IsNoted,
}

/// The reasons why measurements are missing, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Missing(RefCell<Vec<String>>);

impl From<Vec<String>> for Missing {
    fn from(reasons: Vec<String>) -> Self {
        Self(RefCell::new(reasons))
    }
}

impl Missing {
    /// Returns the measurement, or records the error and returns `None`.
    pub(crate) fn or_note<S>(&self, measured: Result<S>) -> Option<S> {
        measured.map_err(|why| self.note(&format!("{why:#}"))).ok()
    }

    /// Returns the measurement, or records the error and returns `None`.
    ///
    /// # Errors
    /// The error of `measured`, if it ends the experiment.
    pub(crate) fn or_note_if<S>(&self, failure: Failure, measured: Result<S>) -> Result<Option<S>> {
        match failure {
            Failure::Ends => measured.map(Some),
            Failure::IsNoted => Ok(self.or_note(measured)),
        }
    }

    /// Records a reason.
    pub(crate) fn note(&self, why: &str) {
        let mut all = self.0.borrow_mut();
        if !all.iter().any(|other| other == why) {
            all.push(why.to_owned());
        }
    }

    pub(crate) fn into_reasons(self) -> Vec<String> {
        self.0.into_inner()
    }
}

/// Text in place of a missing result.
pub(crate) const NOT_MEASURED: &str = "not measured";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_once() {
        let missing = Missing::default();
        assert_eq!(missing.or_note(Ok(1)), Some(1));
        for _ in 0..2 {
            let none = missing.or_note::<u8>(Err(anyhow::anyhow!("install it").context("no tool")));
            assert_eq!(none, None);
        }
        assert_eq!(missing.into_reasons(), ["no tool: install it"]);
    }
}
