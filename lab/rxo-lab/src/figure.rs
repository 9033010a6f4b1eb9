//! A figure of a paper as data, which `lab/report` draws and prints.

use rxo_demo::stats::{Spread, quartiles};
use serde::{Serialize, Serializer};

pub(crate) use crate::claim::Shape;
use crate::claim::{Claim, Words};

/// A figure with the values measured here.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figure {
    /// The paper's number, such as "4" or "Table 1". A figure that the paper does not have gets a word
    /// instead, which only names its file.
    pub(crate) number: &'static str,
    /// Label of the y axis where it depends on the machine; otherwise empty, and the words have it.
    #[serde(skip)]
    pub(crate) y_label: String,
    /// The values of x, as text.
    pub(crate) x: Vec<String>,
    pub(crate) series: Vec<Series>,
    /// Values of y to mark with a line.
    pub(crate) guides: Vec<Guide>,
    /// The claims that the figure decides.
    #[serde(serialize_with = "ids")]
    pub(crate) claims: Vec<Claim>,
    /// The paper's condition that points marked as invalid violate; `None` if all points are valid.
    pub(crate) condition: Option<String>,
    /// Named ranges of stacked parts.
    pub(crate) brackets: Vec<Bracket>,
}

/// A name for the parts of the stack at index `place`, up to the value `to`.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Bracket {
    pub(crate) place: usize,
    pub(crate) to: f64,
    pub(crate) name: &'static str,
}

/// A series of a figure: a value, or none, for each x.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) values: Vec<Option<f64>>,
    /// Minimum and maximum behind each value, if it was measured several times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ranges: Vec<Option<(f64, f64)>>,
    /// `true` for each value that violates the paper's condition. Such values are in no verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) invalid: Vec<bool>,
    /// Lower and upper quartile of the measurements behind each value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) quartiles: Vec<Option<(f64, f64)>>,
    /// `true` for a reference: the paper's values, or a bound.
    pub(crate) is_reference: bool,
    pub(crate) shape: Shape,
    /// The colour, 0 to 7; `None` takes the next one. Compared series share a colour.
    pub(crate) colour: Option<usize>,
}

/// A value of y with its meaning.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Guide {
    pub(crate) value: f64,
    pub(crate) meaning: &'static str,
}

impl Series {
    /// Makes a series without a name.
    pub(crate) fn new(values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let is_finite = |value: Option<f64>| value.filter(|value| value.is_finite());
        Self { values: values.into_iter().map(is_finite).collect(), ..Self::default() }
    }

    /// Makes a series of boxplots from the samples of each x.
    pub(crate) fn boxes(samples: &[Vec<f64>]) -> Self {
        let spreads = samples.iter().map(|values| Spread::of(values.iter().copied()));
        let spreads: Vec<_> = spreads.collect();
        Self {
            ranges: spreads.iter().map(|spread| spread.map(|s| (s.min, s.max))).collect(),
            quartiles: samples.iter().map(|values| quartiles(values)).collect(),
            ..Self::new(spreads.iter().map(|spread| spread.map(|s| s.median)))
        }
    }
}

impl Figure {
    /// Returns the figure's id, which also names its file.
    pub(crate) fn id(&self) -> String {
        let Self { number, .. } = self;
        let figure = if number.starts_with("Table") { "" } else { "figure " };
        format!("{figure}{number}").to_lowercase().replace(' ', "-")
    }

    /// Returns the verdicts on the figure's claims.
    #[cfg(test)]
    pub(crate) fn verdicts(&self) -> Vec<Option<bool>> {
        self.claims.iter().map(Claim::holds).collect()
    }
}

/// A figure in a document of results, with its id and numeric values of x.
#[derive(Debug, Serialize)]
pub(crate) struct Drawn {
    id: String,
    /// The values of x as numbers; `None` if one is a name.
    x_values: Option<Vec<f64>>,
    #[serde(flatten)]
    words: Words,
    #[serde(flatten)]
    figure: Figure,
}

impl Drawn {
    /// Adds `words` to a figure.
    pub(crate) fn new(figure: Figure, mut words: Words) -> Self {
        if !figure.y_label.is_empty() {
            figure.y_label.clone_into(&mut words.y_label);
        }
        let x_values = figure.x.iter().map(|text| value(text)).collect();
        Self { id: figure.id(), x_values, words, figure }
    }
}

/// Writes the ids of claims, which stand beside the figures.
fn ids<S: Serializer>(claims: &[Claim], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(claims.iter().map(Claim::id))
}

/// Returns the number that `text` is, in KB if it has a unit; `None` if it is none.
fn value(text: &str) -> Option<f64> {
    let (number, factor) = match text.split_once(' ') {
        None => (text, 1.0),
        Some((number, "KB")) => (number, 1.0),
        Some((number, "MB")) => (number, 1_024.0),
        Some(_) => return None,
    };
    number.parse().ok().map(|number: f64| factor * number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        Figure { x: vec!["2 KB".into(), "4 KB".into()], ..Figure::default() }
    }

    #[test]
    fn numbers_of_x_are_numeric_and_names_are_not() {
        let json = |x: &[&str]| {
            let x = x.iter().map(|&text| text.to_owned()).collect();
            serde_json::to_value(Drawn::new(Figure { x, ..figure() }, Words::default())).unwrap()["x_values"].clone()
        };
        assert_eq!(json(&["512 KB", "2 MB"]), serde_json::json!([512.0, 2048.0]));
        assert_eq!(json(&["1", "2.55"]), serde_json::json!([1.0, 2.55]));
        assert!(json(&["1", "Linux"]).is_null() && json(&["here: 1"]).is_null());
    }

    #[test]
    fn figures_and_tables_are_named_as_the_paper_does() {
        let id = |number| Figure { number, ..figure() }.id();
        assert_eq!([id("4"), id("Table 1")], ["figure-4", "table-1"]);
        assert_eq!(id("sweep guest"), "figure-sweep-guest");
    }
}
