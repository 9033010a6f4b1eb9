//! A figure of a paper as data: rendered as a table for people, JSON for programs, and SVG.

use std::fmt::Write;

use rxo_console::numbers::{grouped, rounded};
use rxo_console::table::Table;
use rxo_demo::stats::{Spread, quartiles};
use rxo_demo::wrap::wrapped;
use rxo_trace::figure::{self, Draw};
use serde::Serialize;

use crate::statement::Statement;

/// A figure with the values measured here.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figure {
    /// The paper's number, such as "4" or "Table 1". A figure that the paper does not have gets a word
    /// instead, which only names its file.
    pub(crate) number: &'static str,
    pub(crate) title: &'static str,
    /// The parameters that are the same for the whole figure, or the method of measurement.
    pub(crate) fixed: &'static str,
    pub(crate) x_label: &'static str,
    pub(crate) y_label: &'static str,
    /// The values of x, as text.
    pub(crate) x: Vec<String>,
    pub(crate) series: Vec<Series>,
    /// Values of y to mark with a line.
    pub(crate) guides: Vec<Guide>,
    /// The paper's statements about the figure, and whether they hold here.
    pub(crate) statements: Vec<Statement>,
    /// The paper's condition that points marked as invalid violate; `None` if all points are valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) condition: Option<String>,
    /// Named ranges of stacked parts.
    #[serde(skip)]
    pub(crate) brackets: Vec<Bracket>,
}

/// A name for the parts of the stack at index `place`, up to the value `to`.
#[derive(Clone, Copy, Debug)]
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
    #[serde(skip)]
    pub(crate) shape: Shape,
    /// The colour, 0 to 7; `None` takes the next one. Compared series share a colour.
    #[serde(skip)]
    pub(crate) colour: Option<usize>,
}

/// The way in which a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
            values,
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
}

impl Figure {
    /// Withdraws every verdict. The values and the statements' texts stay.
    pub(crate) fn withhold(&mut self) {
        self.statements.iter_mut().for_each(Statement::withhold);
    }

    /// Returns the name of the figure's SVG file.
    pub(crate) fn file_name(&self) -> String {
        format!("{}.svg", self.name().to_lowercase().replace(' ', "-"))
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

    /// Returns the table, followed by the statements.
    pub(crate) fn text(&self) -> String {
        let head = [self.x_label].into_iter().chain(self.series.iter().map(|s| s.name.as_str()));
        let mut table = Table::new(&head.collect::<Vec<_>>());
        for (index, x) in self.x.iter().enumerate() {
            let cells = self.series.iter().map(|series| series.cell(index));
            table.row([x.clone()].into_iter().chain(cells));
        }
        let mut text = format!("{} ({})\n\n{}", self.heading(), self.fixed, table.render());
        if let Some(condition) = &self.condition {
            // Writing to a string cannot fail.
            _ = write!(text, "\n\n{}", wrapped(&format!("! invalid, in no verdict: {condition}")));
        }
        for statement in &self.statements {
            // Writing to a string cannot fail.
            _ = write!(text, "\n\n{}", statement.text());
        }
        text
    }

    /// Returns the drawing as a complete SVG document.
    pub(crate) fn svg(&self) -> String {
        let x_label = format!("{} ({})", self.x_label, self.fixed);
        let x = figure::Axis::categories(x_label, self.x.iter().cloned());
        let drawing = figure::Figure::new(self.heading(), x, figure::Axis::linear(self.y_label));
        let drawing = drawing.describe(self.description());
        let drawing =
            self.series.iter().fold(drawing, |drawing, series| drawing.with(series.drawn()));
        let drawing = self.brackets.iter().fold(drawing, |drawing, bracket| {
            drawing.bracket(figure::Bracket {
                x: bracket.place as f64,
                from: 0.0,
                to: bracket.to,
                name: bracket.name.to_owned(),
            })
        });
        let guides = self.guides.iter();
        let drawing = guides.fold(drawing, |drawing, guide| {
            drawing.guide(figure::Guide::Y(guide.value, guide.meaning.to_owned()))
        });
        drawing.to_svg()
    }

    /// Returns a description of the drawing, for readers who cannot see it.
    fn description(&self) -> String {
        let said = self.statements.iter().map(|said| said.ours.clone());
        let invalid = self.condition.iter().map(|condition| format!("Invalid points: {condition}"));
        let said: Vec<String> = said.chain(invalid).collect();
        format!("{} by {}. {}", self.y_label, self.x_label, said.join(" "))
    }
}

impl Series {
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

    fn drawn(&self) -> figure::Series {
        let values = self.values.iter().map(|value| value.unwrap_or(f64::NAN));
        let line = match self.shape {
            Shape::Line => figure::Series::over_categories(&self.name, values),
            Shape::Bars => figure::Series::bars(&self.name, values),
            Shape::Stack => figure::Series::stack(&self.name, values),
            Shape::Boxes => figure::Series::boxes(&self.name, values, self.quartiles.clone()),
        };
        let ranges = self.ranges.iter().copied();
        let line = line.ranges(ranges).invalid(self.invalid.iter().copied());
        let line = figure::Series { colour: self.colour, ..line };
        if self.is_reference { line.reference() } else { line }
    }
}

fn number(value: f64) -> String {
    if value.abs() >= 100.0 {
        grouped(value.round().max(0.0) as u64)
    } else {
        rounded(value, 2).to_string()
    }
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
    fn the_drawing_has_every_series_and_guide() {
        let svg = figure().svg();
        for part in ["4 connections", "most", "half", "Figure 4. Packets eliminated"] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
    }

    #[test]
    fn ranges_and_invalid_values_are_in_table_and_drawing() {
        let spread = |median, least, most| Some(Spread { median, min: least, max: most });
        let spreads = vec![spread(90.0, 20.0, 200.0), spread(22.0, 21.0, 24.0)];
        let series = Series::of_spreads("Regular", spreads);
        let valid = Figure { series: vec![series.clone()], guides: Vec::new(), ..figure() };
        assert!(valid.text().contains("22 (21-24)"), "{}", valid.text());
        assert_eq!(valid.svg().matches("class=\"fig-range\"").count(), 2);
        let series = Series { invalid: vec![true, false], ..series };
        let condition = Some("2 KB did not reach 0.95 Gbit/s.".to_owned());
        let half = Figure { series: vec![series], condition, ..valid };
        assert!(half.text().contains("90 (20-200) !"), "{}", half.text());
        assert!(half.text().contains("! invalid, in no verdict: 2 KB did not reach"));
        let svg = half.svg();
        assert!(svg.contains("fig-cross") && svg.contains("invalid: see the text"), "{svg}");
        assert_eq!(svg.matches("class=\"fig-range\"").count(), 1);
    }

    #[test]
    fn figures_and_tables_are_named_as_the_paper_does() {
        assert_eq!(figure().file_name(), "figure-4.svg");
        let table = Figure { number: "Table 1", ..figure() };
        assert_eq!(table.file_name(), "table-1.svg");
        assert!(table.text().starts_with("Table 1. "));
        let ours = Figure { number: "sweep guest", ..figure() };
        assert_eq!(ours.file_name(), "figure-sweep-guest.svg");
        assert!(ours.text().starts_with("Packets eliminated (4 entries)"), "{}", ours.text());
        assert!(!ours.svg().contains("sweep guest"));
    }
}
