//! Claims: statements about a measurement, each with an id, a rule, and a verdict.
//!
//! The claims are data ([`said`]), and say how the value follows from an experiment's measurements; one function
//! computes the verdict from both ([`status`]). Nothing else decides.

mod drawing;
mod said;
mod status;

use std::collections::BTreeSet;

use rxo_console::numbers::rounded;
use serde::{Serialize, Serializer};

pub(crate) use self::drawing::{Column, Drawing, Line, Shape};
pub(crate) use self::said::{Book, Derivation, Fact, Said, Words, book, if_so};
pub(crate) use self::status::Status;

/// A measured value with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Ours {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The number of measurements.
    pub(crate) count: usize,
}

impl Ours {
    /// Returns the value with the opposite sign.
    fn mirrored(self) -> Self {
        Self { value: -self.value, low: -self.high, high: -self.low, ..self }
    }
}

/// A claim, with the measured value and the verdict.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claim {
    said: Said,
    ours: Option<Ours>,
    /// The result here, in a sentence.
    detail: Option<String>,
    /// The reason for the verdict.
    why: Option<String>,
    /// The reason why the measurements permit no verdict.
    withheld: Option<String>,
    /// The names of the tables from which the value follows.
    tables: BTreeSet<String>,
}

impl Claim {
    /// Makes the claim `said` with the measured value, if there is one. `detail` is the result in a sentence.
    pub(crate) fn new(said: &Said, ours: Option<Ours>, detail: Option<String>) -> Self {
        let tables = BTreeSet::new();
        Self { said: said.clone(), ours, detail, why: None, withheld: None, tables }
    }

    /// Adds the names of the tables from which the value follows.
    pub(crate) fn with_tables(self, tables: BTreeSet<String>) -> Self {
        Self { tables, ..self }
    }

    /// Returns the names of the tables from which the value follows.
    pub(crate) const fn tables(&self) -> &BTreeSet<String> {
        &self.tables
    }

    /// Adds the reason for the verdict, if the claim is not reproduced.
    pub(crate) fn because(self, why: impl FnOnce() -> String) -> Self {
        let why = (!self.is_good()).then(why);
        Self { why, ..self }
    }

    /// Withdraws the verdict; `why` gives the reason.
    pub(crate) fn undecided(self, why: String) -> Self {
        Self { withheld: Some(why), ..self }
    }

    /// Withdraws the verdict if the value depends on time; `why` gives the reason.
    pub(crate) fn withhold(&mut self, why: &str) {
        if self.said.basis.is_timed() && self.withheld.is_none() {
            self.withheld = Some(why.to_owned());
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.said.id
    }

    pub(crate) fn status(&self) -> Status {
        let status = self.said.rule.status(self.ours);
        let is_decided = !matches!(status, Status::NotRepeated | Status::Calibration);
        if is_decided && self.withheld.is_some() { Status::NoVerdict } else { status }
    }

    /// Returns `true` if the claim is good here, `false` if it is not; `None` without a verdict.
    #[cfg(test)]
    pub(crate) fn holds(&self) -> Option<bool> {
        match self.status() {
            Status::Reproduced | Status::Exceeds => Some(true),
            Status::Weaker | Status::Contradicted => Some(false),
            Status::NotRepeated | Status::Calibration | Status::NoVerdict => None,
        }
    }

    fn is_good(&self) -> bool {
        matches!(self.status(), Status::Reproduced | Status::Exceeds)
    }

    /// Returns the reason for the verdict: that of this run, or else the standing one of the book.
    fn why(&self) -> Option<String> {
        let unless_given = |other: Option<String>| self.why.clone().or(other);
        match self.status() {
            Status::Reproduced | Status::Exceeds => None,
            Status::NoVerdict => self.withheld.clone().or(Some(UNDECIDED.to_owned())),
            Status::NotRepeated => {
                unless_given(self.said.not_repeated.clone()).or(Some(UNMEASURED.to_owned()))
            }
            _ => unless_given(self.said.why.clone()),
        }
    }

    /// Returns the verdict, the id and the values in a line; `lab/report` has the words.
    pub(crate) fn line(&self) -> String {
        let shown = |value: f64| rounded(value, 2).to_string();
        let ours = self.ours.map_or("-".to_owned(), |ours| match ours.low == ours.high {
            true => shown(ours.value),
            false => format!("{} ({} to {})", shown(ours.value), shown(ours.low), shown(ours.high)),
        });
        let Said { id, unit, rule, .. } = &self.said;
        let bound = rule.bound.map_or("-".to_owned(), shown);
        let status = self.status();
        let more = [self.detail.clone(), self.why()].into_iter().flatten();
        let more: String = more.map(|sentence| format!(" {sentence}")).collect();
        format!("{status:<12}  {id:<36}  {ours} {unit}, bound {bound}.{more}")
    }
}

impl Serialize for Claim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'c> {
            #[serde(flatten)]
            said: &'c Said,
            ours: Option<Ours>,
            detail: &'c Option<String>,
            status: Status,
            why: Option<String>,
        }
        let Self { said, ours, detail, .. } = self;
        let (ours, status, why) = (*ours, self.status(), self.why());
        Document { said, ours, detail, status, why }.serialize(serializer)
    }
}

const UNDECIDED: &str = "The interval of the measurements is on both sides of the bound.";
const UNMEASURED: &str = "It was not measured in this run.";

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes the claim `id` of a book with this value.
    pub(crate) fn claim(id: &str, value: Option<f64>) -> Claim {
        let (experiment, _) = id.split_once('.').unwrap();
        let said = book(experiment).unwrap().claims.iter().find(|said| said.id == id);
        let ours = value.map(|value| Ours { value, low: value, high: value, count: 1 });
        Claim::new(said.unwrap(), ours, None)
    }

    const TIMED: &str = "menon.fig7.both.up";

    #[test]
    fn the_line_has_the_verdict_first_and_the_reason_last() {
        let line = |value| claim(TIMED, Some(value)).because(|| "Linux waits.".to_owned()).line();
        assert!(line(14.0).starts_with("weaker        menon.fig7.both.up"), "{}", line(14.0));
        assert!(line(14.0).ends_with("14 %, bound 45. Linux waits."), "{}", line(14.0));
        assert!(!line(50.0).contains("Linux waits."), "no reason is needed");
    }

    #[test]
    fn a_verdict_can_be_withdrawn_but_not_the_value() {
        let mut timed = claim(TIMED, Some(50.0));
        timed.withhold("A neighbour was busy.");
        let json = serde_json::to_value(&timed).unwrap();
        assert_eq!((&json["status"], &json["ours"]["value"]), (&"no-verdict".into(), &50.0.into()));
        assert_eq!(json["why"], "A neighbour was busy.");
        let mut counted = claim("xen.table-v.driver.da", Some(0.5));
        counted.withhold("A neighbour was busy.");
        assert_eq!(counted.status(), Status::Weaker, "a count does not depend on time");
    }

    #[test]
    fn what_was_not_measured_has_a_reason() {
        let json = serde_json::to_value(claim(TIMED, None)).unwrap();
        assert_eq!((&json["status"], &json["why"]), (&"not-repeated".into(), &UNMEASURED.into()));
    }
}
