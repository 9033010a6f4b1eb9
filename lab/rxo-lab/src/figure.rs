//! A figure of a paper as data: rendered as a table for people, and as JSON for `lab/report`, which draws it.

use rxo_console::numbers::{grouped, rounded};
use rxo_console::table::Table;
use rxo_demo::stats::{Spread, quartiles};
use rxo_demo::wrap::wrapped;
use serde::{Serialize, Serializer};

use crate::claim::{Basis, Claim};

/// A figure with the values measured here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figure {
    /// The paper's number, such as "4" or "Table 1". A figure that the paper does not have gets a word
    /// instead, which only names its file.
    pub(crate) number: &'static str,
    pub(crate) title: &'static str,
    /// The parameters that are the same for the whole figure, or the method of measurement.
    pub(crate) fixed: &'static str,
    /// The kind of measurement behind every series that is no reference.
    pub(crate) basis: Basis,
    pub(crate) x_label: &'static str,
    pub(crate) y_label: &'static str,
    /// The values of x, as text.
    pub(crate) x: Vec<String>,
    pub(crate) series: Vec<Series>,
    /// Values of y to mark with a line.
    pub(crate) guides: Vec<Guide>,
    /// The claims that the figure decides.
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
#[derive(Clone, Debug, Serialize)]
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

/// The way in which a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    #[default]
    Line,
    /// Separate bars, for x values without an order.
    Bars,
    /// A part of the stack at each x.
    Stack,
    /// A box from the lower to the upper quartile, with whiskers to minimum and maximum.
    Boxes,
}

/// A value of y with its meaning.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Guide {
    pub(crate) value: f64,
    pub(crate) meaning: &'static str,
}

impl Series {
    pub(crate) fn new(name: impl Into<String>, values: Vec<Option<f64>>) -> Self {
        Self {
            name: name.into(),
            values: values.into_iter().map(|it| it.filter(|value| value.is_finite())).collect(),
            ranges: Vec::new(),
            invalid: Vec::new(),
            quartiles: Vec::new(),
            is_reference: false,
            shape: Shape::Line,
            colour: None,
        }
    }

    /// Makes a series of medians with their ranges.
    pub(crate) fn of_spreads(name: impl Into<String>, spreads: Vec<Option<Spread>>) -> Self {
        let ranges = spreads.iter().map(|spread| spread.map(|s| (s.min, s.max))).collect();
        let values = spreads.into_iter().map(|spread| spread.map(|s| s.median)).collect();
        Self { ranges, ..Self::new(name, values) }
    }

    /// Makes a series of boxplots from the samples of each x.
    pub(crate) fn boxes(name: impl Into<String>, samples: &[Vec<f64>]) -> Self {
        let spreads = samples.iter().map(|values| Spread::of(values.iter().copied())).collect();
        let quartiles = samples.iter().map(|values| quartiles(values)).collect();
        Self { quartiles, shape: Shape::Boxes, ..Self::of_spreads(name, spreads) }
    }

    pub(crate) fn reference(name: impl Into<String>, values: Vec<Option<f64>>) -> Self {
        Self { is_reference: true, ..Self::new(name, values) }
    }

    /// Draws this series as bars.
    pub(crate) fn bars(self) -> Self {
        Self { shape: Shape::Bars, ..self }
    }

    /// Draws this series as parts of stacks.
    pub(crate) fn stack(self) -> Self {
        Self { shape: Shape::Stack, ..self }
    }

    pub(crate) fn colour(self, colour: usize) -> Self {
        Self { colour: Some(colour), ..self }
    }

    fn cell(&self, index: usize) -> String {
        let value = self.values.get(index).copied().flatten();
        let text = value.map_or("-".to_owned(), number);
        let text = match self.ranges.get(index).copied().flatten() {
            None => text,
            Some((least, most)) => format!("{text} ({}-{})", number(least), number(most)),
        };
        let is_invalid = self.invalid.get(index).copied().unwrap_or_default();
        if is_invalid { format!("{text} !") } else { text }
    }
}

impl Figure {
    /// Returns the figure's id, which also names its file.
    pub(crate) fn id(&self) -> String {
        self.name().to_lowercase().replace(' ', "-")
    }

    fn name(&self) -> String {
        let Self { number, .. } = self;
        if number.starts_with("Table") { (*number).to_owned() } else { format!("Figure {number}") }
    }

    /// Returns the heading: the title, after the paper's number if there is one.
    fn heading(&self) -> String {
        let is_papers = self.number.starts_with("Table")
            || self.number.starts_with(|c: char| c.is_ascii_digit());
        if is_papers { format!("{}. {}", self.name(), self.title) } else { self.title.to_owned() }
    }

    /// Returns the verdicts on the figure's claims.
    #[cfg(test)]
    pub(crate) fn verdicts(&self) -> Vec<Option<bool>> {
        self.claims.iter().map(Claim::holds).collect()
    }

    /// Returns the figure as a table with a row for each x.
    pub(crate) fn text(&self) -> String {
        let head = [self.x_label].into_iter().chain(self.series.iter().map(|s| s.name.as_str()));
        let mut table = Table::new(&head.collect::<Vec<_>>());
        for (index, x) in self.x.iter().enumerate() {
            let cells = self.series.iter().map(|series| series.cell(index));
            table.row([x.clone()].into_iter().chain(cells));
        }
        let invalid = |condition: &String| {
            format!("\n\n{}", wrapped(&format!("! invalid, in no verdict: {condition}")))
        };
        let condition = self.condition.as_ref().map(invalid).unwrap_or_default();
        format!("{} ({})\n\n{}{condition}", self.heading(), self.fixed, table.render())
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'f> {
            id: String,
            number: &'f str,
            title: &'f str,
            fixed: &'f str,
            basis: Basis,
            x_label: &'f str,
            y_label: &'f str,
            x: &'f [String],
            x_values: Option<Vec<f64>>,
            series: &'f [Series],
            guides: &'f [Guide],
            brackets: &'f [Bracket],
            claims: Vec<&'f str>,
            condition: &'f Option<String>,
        }
        let Self { number, title, fixed, basis, x_label, y_label, x, series, .. } = self;
        let Self { guides, brackets, condition, .. } = self;
        let (id, x_values) = (self.id(), x.iter().map(|text| value(text)).collect());
        let claims = self.claims.iter().map(Claim::id).collect();
        let basis = *basis;
        Document {
            id,
            number,
            title,
            fixed,
            basis,
            x_label,
            y_label,
            x,
            x_values,
            series,
            guides,
            brackets,
            claims,
            condition,
        }
        .serialize(serializer)
    }
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

fn number(value: f64) -> String {
    if value >= 100.0 { grouped(value.round() as u64) } else { rounded(value, 2).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        Figure {
            number: "4",
            title: "Packets eliminated",
            fixed: "4 entries",
            x_label: "payload",
            y_label: "packets of 10,000",
            x: vec!["2 KB".into(), "4 KB".into()],
            series: vec![
                Series::new("4 connections", vec![Some(4_998.0), None]),
                Series::reference("most", vec![Some(5_000.0), Some(6_667.4)]),
            ],
            guides: vec![Guide { value: 5_000.0, meaning: "half" }],
            ..Figure::default()
        }
    }

    #[test]
    fn the_table_has_a_row_for_each_x() {
        let expected = "Figure 4. Packets eliminated (4 entries)\n\n\
                        payload  4 connections   most\n\
                        2 KB             4,998  5,000\n\
                        4 KB                 -  6,667";
        assert_eq!(figure().text(), expected);
    }

    #[test]
    fn ranges_and_invalid_values_are_in_the_table() {
        let spread = |median, min, max| Some(Spread { median, min, max });
        let spreads = vec![spread(90.0, 20.0, 200.0), spread(22.0, 21.0, 24.0)];
        let series =
            Series { invalid: vec![true, false], ..Series::of_spreads("Regular", spreads) };
        let condition = Some("2 KB did not reach 0.95 Gbit/s.".to_owned());
        let text = Figure { series: vec![series], condition, ..figure() }.text();
        assert!(text.contains("90 (20-200) !") && text.contains("22 (21-24)"), "{text}");
        assert!(text.contains("! invalid, in no verdict: 2 KB did not reach"), "{text}");
    }

    #[test]
    fn numbers_of_x_are_numeric_and_names_are_not() {
        let json = |x: &[&str]| {
            let x = x.iter().map(|&text| text.to_owned()).collect();
            serde_json::to_value(Figure { x, ..figure() }).unwrap()["x_values"].clone()
        };
        assert_eq!(json(&["512 KB", "2 MB"]), serde_json::json!([512.0, 2048.0]));
        assert_eq!(json(&["1", "2.55"]), serde_json::json!([1.0, 2.55]));
        assert!(json(&["1", "Linux"]).is_null() && json(&["here: 1"]).is_null());
    }

    #[test]
    fn figures_and_tables_are_named_as_the_paper_does() {
        assert_eq!(figure().id(), "figure-4");
        let table = Figure { number: "Table 1", ..figure() };
        assert_eq!(table.id(), "table-1");
        assert!(table.text().starts_with("Table 1. "));
        let ours = Figure { number: "sweep guest", ..figure() };
        assert_eq!(ours.id(), "figure-sweep-guest");
        assert!(ours.text().starts_with("Packets eliminated (4 entries)"), "{}", ours.text());
    }
}
