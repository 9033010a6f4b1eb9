//! The claims as data: a file for each experiment in `claims/`, which is part of the program.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::drawing::Drawing;
use super::status::{Kind, Rule};

/// The author of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Origin {
    #[default]
    Paper,
    /// This project: the paper says nothing of it, or less.
    Aim,
}

/// The words of a figure, which stand in the experiment's book.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    pub(crate) title: String,
    /// The parameters that are the same for the whole figure, or the method of measurement.
    pub(crate) fixed: String,
    /// The kind of measurement behind every series that is no reference.
    #[serde(default)]
    pub(crate) basis: Basis,
    pub(crate) x_label: String,
    /// Empty if the figure itself has it.
    #[serde(default)]
    pub(crate) y_label: String,
}

/// The row of a comparison. The paper's verdict is on the mechanism alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    Baseline,
    /// The paper's mechanism alone.
    Mechanism,
    /// rxo's best configuration.
    Best,
}

/// The kind of measurement that a value comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Basis {
    /// Counted: instructions, frames or copies.
    #[default]
    Count,
    VirtualTime,
    ProcessorTime,
    /// Real time, or the order in which live senders' frames arrive.
    Live,
}

impl Basis {
    /// Returns `true` if other processes can change the value.
    pub(crate) const fn is_timed(self) -> bool {
        matches!(self, Self::ProcessorTime | Self::Live)
    }
}

/// A value of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Paper {
    Value(f64),
    Range { low: f64, high: f64 },
}

/// A claim without a measurement.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(from = "Written")]
pub(crate) struct Said {
    pub(crate) id: String,
    /// The place in the paper.
    pub(crate) section: String,
    pub(crate) text: String,
    pub(crate) origin: Origin,
    pub(crate) row: Option<Part>,
    /// The unit of every value of the claim.
    pub(crate) unit: String,
    pub(crate) paper: Option<Paper>,
    pub(crate) rule: Rule,
    pub(crate) basis: Basis,
    /// The reason why the claim is a calibration, or is not reproduced here.
    #[serde(skip_serializing)]
    pub(crate) why: Option<String>,
    /// The reason why no experiment measures the claim; `None` if one does.
    #[serde(skip_serializing)]
    pub(crate) not_repeated: Option<String>,
    /// The derivation of the value from measured rows; `None` if nothing measures it.
    #[serde(skip_serializing)]
    pub(crate) ours: Option<Derivation>,
}

/// The derivation of a claim from measured rows: expressions and templates of `conclude`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Derivation {
    pub(crate) value: String,
    /// The result in a sentence.
    pub(crate) detail: Option<String>,
    /// The reason for the verdict, if the claim is not good here.
    pub(crate) because: Option<String>,
    /// An expression that withdraws the verdict if it is above 0, with the reason.
    pub(crate) undecided: Option<(String, String)>,
}

/// A claim as its file has it, with defaults.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    section: String,
    text: String,
    #[serde(default)]
    origin: Origin,
    row: Option<Part>,
    #[serde(default)]
    unit: String,
    paper: Option<Paper>,
    #[serde(default)]
    rule: Kind,
    /// Without this, the bound is the paper's value, or the end of the paper's range that is easier to reach.
    bound: Option<f64>,
    neutral: Option<f64>,
    tolerance: Option<f64>,
    #[serde(default)]
    basis: Basis,
    why: Option<String>,
    not_repeated: Option<String>,
    ours: Option<Derivation>,
}

impl From<Written> for Said {
    fn from(written: Written) -> Self {
        let Written { id, section, text, origin, row, unit, paper, basis, why, .. } = written;
        let Written { rule: kind, bound, neutral, tolerance, not_repeated, ours, .. } = written;
        let papers = match (kind, paper) {
            (Kind::None, _) | (_, None) => None,
            (_, Some(Paper::Value(value))) => Some(value),
            (Kind::AtMost | Kind::LessThan, Some(Paper::Range { high, .. })) => Some(high),
            (Kind::Within, Some(Paper::Range { low, high })) => Some(f64::midpoint(low, high)),
            (_, Some(Paper::Range { low, .. })) => Some(low),
        };
        let rule = Rule { kind, bound: bound.or(papers), neutral, tolerance };
        Self { id, section, text, origin, row, unit, paper, rule, basis, why, not_repeated, ours }
    }
}

/// The claims of one experiment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Book {
    /// The experiment's name.
    pub(crate) experiment: String,
    /// The paper's key in the bibliography; `None` if no paper is repeated.
    pub(crate) paper: Option<String>,
    pub(crate) title: String,
    pub(crate) claims: Vec<Said>,
    /// The words of each figure, by its number.
    #[serde(default)]
    pub(crate) figures: BTreeMap<String, Words>,
    /// The figures that are data, in their order.
    #[serde(default)]
    pub(crate) drawings: Vec<Drawing>,
    /// Rows that are not measured: the paper's values, and groups of cases.
    #[serde(default)]
    pub(crate) tables: BTreeMap<String, Value>,
    /// Expressions by their name and parameters, such as `share(system polls)`.
    #[serde(default)]
    pub(crate) define: BTreeMap<String, String>,
    /// Labels of figures for names in the rows.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// The colours of the lines with these names.
    #[serde(default)]
    pub(crate) colours: BTreeMap<String, usize>,
    /// The method, one paragraph each, with places `{name}` for the facts of a run.
    notes: Vec<String>,
}

/// A fact of a run, by its name in notes. An empty one only says that a note applies.
pub(crate) type Fact = (&'static str, String);

/// Returns the empty fact `name` if it `is` so.
pub(crate) fn if_so(name: &'static str, is: bool) -> Option<Fact> {
    is.then(|| (name, String::new()))
}

impl Book {
    /// Returns what figures call `name`: itself, unless the book has a label.
    pub(crate) fn label<'n>(&'n self, name: &'n str) -> &'n str {
        self.labels.get(name).map_or(name, String::as_str)
    }

    /// Returns the notes whose facts are all known, with the facts in their places.
    pub(crate) fn notes(&self, facts: &[Fact]) -> Vec<String> {
        let known = |note: &String| {
            let fill =
                |note: String, (name, fact): &Fact| note.replace(&format!("{{{name}}}"), fact);
            Some(facts.iter().fold(note.clone(), fill)).filter(|note| !note.contains('{'))
        };
        self.notes.iter().filter_map(known).collect()
    }
}

/// The texts of all books.
const TEXTS: [&str; 12] = [
    include_str!("../../claims/cast.json"),
    include_str!("../../claims/cast-live.json"),
    include_str!("../../claims/gallatin.json"),
    include_str!("../../claims/juggler.json"),
    include_str!("../../claims/menon.json"),
    include_str!("../../claims/menon-acks.json"),
    include_str!("../../claims/menon-card.json"),
    include_str!("../../claims/paro.json"),
    include_str!("../../claims/policies.json"),
    include_str!("../../claims/rsc.json"),
    include_str!("../../claims/smo.json"),
    include_str!("../../claims/xen.json"),
];

/// The claims of every experiment. A test reads each text.
static BOOKS: LazyLock<Vec<Book>> = LazyLock::new(|| {
    TEXTS.iter().map(|text| serde_json::from_str(text).unwrap_or_default()).collect()
});

/// Returns the claims of `experiment`; `None` if there is no such experiment.
pub(crate) fn book(experiment: &str) -> Option<&'static Book> {
    BOOKS.iter().find(|book| book.experiment == experiment)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn books() -> Vec<Book> {
        TEXTS.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
    }

    #[test]
    fn every_claim_has_an_id_of_its_own_that_begins_with_its_experiment() {
        let mut ids = Vec::new();
        for book in books() {
            for said in &book.claims {
                let prefix = format!("{}.", book.experiment);
                assert!(said.id.starts_with(&prefix), "{}", said.id);
                assert!(said.text.ends_with(['.', '"']) && !said.section.is_empty(), "{said:?}");
                ids.push(said.id.clone());
            }
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }

    #[test]
    fn a_rule_has_a_bound_and_a_claim_without_a_rule_a_reason() {
        for said in books().iter().flat_map(|book| &book.claims) {
            assert_eq!(said.rule.bound.is_some(), said.rule.kind != Kind::None, "{}", said.id);
            assert!(said.rule.kind != Kind::None || said.why.is_some(), "{}", said.id);
            assert!(
                said.origin == Origin::Aim
                    || said.paper.is_some()
                    || said.rule.bound.is_some()
                    || said.why.is_some(),
                "{}",
                said.id
            );
        }
    }

    #[test]
    fn a_note_needs_its_facts() {
        let book = book("smo").unwrap();
        let notes = book.notes(&[("simulated_mbit", "7.5".to_owned())]);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[1].contains("a link of 7.5 Mbit/s."), "{notes:?}");
    }

    /// A claim that nothing measures could never be decided, and would be silently missing.
    #[test]
    fn every_claim_is_measured_or_says_why_not() {
        for book in books() {
            for Said { id, ours, not_repeated, .. } in &book.claims {
                assert_eq!(ours.is_some(), not_repeated.is_none(), "{id}");
            }
            let drawn: BTreeSet<_> = book.drawings.iter().map(|it| &it.number).collect();
            assert_eq!(drawn, book.figures.keys().collect(), "{}", book.experiment);
            for id in book.drawings.iter().flat_map(|drawing| &drawing.claims) {
                assert!(book.claims.iter().any(|said| said.id == *id), "no claim {id}");
            }
        }
    }
}
