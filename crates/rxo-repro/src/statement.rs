//! What the paper says, and whether it is so here.

use serde::Serialize;

use crate::wrap::wrapped;

/// One thing that the paper says of a figure, held against what was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Statement {
    /// What the paper says; in quotation marks where it is quoted.
    pub(crate) paper: &'static str,
    /// Whether it is so here; `None` when there is nothing to tell it from.
    pub(crate) holds: Option<bool>,
    /// What was found here, a sentence.
    pub(crate) ours: String,
    /// Why it is not so, or not quite.
    pub(crate) why: Option<String>,
}

impl Statement {
    pub(crate) fn new(paper: &'static str, holds: Option<bool>, ours: String) -> Self {
        Self { paper, holds, ours, why: None }
    }

    /// Adds a reason if the statement does not hold.
    pub(crate) fn unless_it_holds(self, why: impl FnOnce() -> String) -> Self {
        let why = (self.holds == Some(false)).then(why);
        Self { why, ..self }
    }

    /// Adds a reason whether or not the statement holds.
    pub(crate) fn because(self, why: String) -> Self {
        Self { why: Some(why), ..self }
    }

    pub(crate) fn text(&self) -> String {
        let Self { paper, holds, ours, why } = self;
        let verdict = match holds {
            Some(true) => "holds",
            Some(false) => "DOES NOT HOLD",
            None => "not measured",
        };
        let why = why.as_ref().map(|why| format!(" {why}")).unwrap_or_default();
        wrapped(&format!("{verdict}: the paper: {paper}. Here: {ours}{why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_given_only_where_one_is_needed() {
        let held = Statement::new("more", Some(true), "More.".into());
        assert_eq!(held.clone().unless_it_holds(|| "Why.".into()), held);
        let failed = Statement { holds: Some(false), ..held }.unless_it_holds(|| "Why.".into());
        assert_eq!(failed.text(), "DOES NOT HOLD: the paper: more. Here: More. Why.");
    }
}
