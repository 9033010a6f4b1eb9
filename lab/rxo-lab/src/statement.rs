//! A statement about a figure, with a verdict: the paper's, or an aim of this project.

use rxo_demo::wrap::wrapped;
use serde::Serialize;

/// The author of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    Paper,
    /// This project: the paper says nothing of it, or less.
    Aim,
    /// The paper, but the value was chosen here, as an input, so that the statement cannot fail.
    Calibration,
}

/// A statement about a figure, with the verdict from the measurements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Statement {
    pub(crate) origin: Origin,
    /// The statement; in quotation marks if it is quoted.
    pub(crate) claim: &'static str,
    /// `true` if the statement holds here; `None` if nothing was measured that decides it.
    pub(crate) holds: Option<bool>,
    /// The result here, in a sentence.
    pub(crate) ours: String,
    /// The reason why the statement does not hold, or not fully; `None` if no reason is given.
    pub(crate) why: Option<String>,
    /// `true` if measurements exist but permit no verdict: the machine was busy, or they do not decide.
    #[serde(skip)]
    pub(crate) is_withheld: bool,
}

/// Returns the verdict in the words of reports. `is_withheld` is set if measurements exist but permit no
/// verdict.
pub(crate) const fn verdict(holds: Option<bool>, is_withheld: bool) -> &'static str {
    match holds {
        Some(true) => "holds",
        Some(false) => "DOES NOT HOLD",
        None if is_withheld => "no verdict",
        None => "not measured",
    }
}

impl Statement {
    /// Makes a statement of the paper.
    pub(crate) fn new(claim: &'static str, holds: Option<bool>, ours: String) -> Self {
        Self { origin: Origin::Paper, claim, holds, ours, why: None, is_withheld: false }
    }

    /// Makes a statement of the paper that has no verdict, because its value is an input here.
    pub(crate) fn calibration(claim: &'static str, ours: String) -> Self {
        Self { origin: Origin::Calibration, ..Self::new(claim, None, ours) }
    }

    /// Makes this statement an aim of this project.
    pub(crate) fn aim(self) -> Self {
        Self { origin: Origin::Aim, ..self }
    }

    /// Makes a statement of the paper that the measurements do not decide; `why` gives the reason.
    pub(crate) fn undecided(claim: &'static str, ours: String, why: String) -> Self {
        Self { is_withheld: true, ..Self::new(claim, None, ours).because(why) }
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

    /// Withdraws the verdict and its reason. The result's text stays.
    pub(crate) fn withhold(&mut self) {
        if self.holds.take().is_some() {
            (self.why, self.is_withheld) = (None, true);
        }
    }

    pub(crate) fn text(&self) -> String {
        let Self { origin, claim, holds, ours, why, is_withheld } = self;
        let (verdict, author) = match origin {
            Origin::Paper => (verdict(*holds, *is_withheld), "the paper"),
            Origin::Aim => (verdict(*holds, *is_withheld), "our aim"),
            Origin::Calibration => ("calibration", "the paper"),
        };
        let why = why.as_ref().map(|why| format!(" {why}")).unwrap_or_default();
        wrapped(&format!("{verdict}: {author}: {claim}. Here: {ours}{why}"))
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

    #[test]
    fn a_verdict_can_be_taken_back_but_not_what_was_found() {
        let failed = Statement::new("more", Some(false), "Less.".into());
        let mut withheld = failed.because("Why.".into());
        withheld.withhold();
        assert_eq!(
            (withheld.holds, withheld.text().as_str()),
            (None, "no verdict: the paper: more. Here: Less.")
        );
        let mut unmeasured = Statement::new("more", None, "Nothing.".into());
        unmeasured.withhold();
        assert!(unmeasured.text().starts_with("not measured: "));
    }

    #[test]
    fn an_aim_and_a_calibration_are_not_taken_for_the_papers() {
        let aim = Statement::new("more", Some(false), "Less.".into()).aim();
        assert_eq!(aim.text(), "DOES NOT HOLD: our aim: more. Here: Less.");
        let input = Statement::calibration("as much", "As much.".into());
        assert_eq!(
            (input.holds, input.text().as_str()),
            (None, "calibration: the paper: as much. Here: As much.")
        );
    }

    #[test]
    fn what_the_measurement_does_not_decide_has_no_verdict_and_says_why() {
        let mut undecided = Statement::undecided("more", "Much more.".into(), "Losses.".into());
        let text = "no verdict: the paper: more. Here: Much more. Losses.";
        assert_eq!((undecided.holds, undecided.text().as_str()), (None, text));
        undecided.withhold();
        assert_eq!(undecided.text(), text, "a busy machine adds nothing");
    }
}
