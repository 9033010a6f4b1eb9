//! A figure of the paper as data: a table for people, JSON for machines, SVG from both alike.

use std::fmt::Write;

use rxo_console::numbers::{grouped, rounded};
use rxo_console::table::Table;
use rxo_trace::figure::{self, Draw};
use serde::Serialize;

use crate::statement::Statement;
use crate::stats::Spread;

/// One figure, measured here.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    /// The paper's number for it, such as "4" or "Table 1".
    pub(crate) number: &'static str,
    pub(crate) title: &'static str,
    /// What is the same for all of it, or how it was measured.
    pub(crate) fixed: &'static str,
    pub(crate) x_label: &'static str,
    pub(crate) y_label: &'static str,
    /// The values of x, as text.
    pub(crate) x: Vec<String>,
    pub(crate) series: Vec<Series>,
    /// Values to mark across it.
    pub(crate) guides: Vec<Guide>,
    /// What the paper says of it, and whether it is so here.
    pub(crate) statements: Vec<Statement>,
}

/// A line of a figure: a value for each x, or none.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) values: Vec<Option<f64>>,
    /// Between which least and most the values lie, where they were measured several times.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ranges: Vec<Option<(f64, f64)>>,
    /// Whether it is what we compare with: the paper's, or a bound.
    pub(crate) is_reference: bool,
    /// Whether it is drawn as bars: what stands beside each other has no order.
    #[serde(skip)]
    pub(crate) is_bars: bool,
}

/// A value of y with its meaning.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Guide {
    pub(crate) value: f64,
    pub(crate) meaning: &'static str,
}

impl Series {
    pub(crate) fn new(name: impl Into<String>, values: Vec<Option<f64>>) -> Self {
        Self { name: name.into(), values, ranges: Vec::new(), is_reference: false, is_bars: false }
    }

    /// Medians with what they lie between.
    pub(crate) fn of_spreads(name: impl Into<String>, spreads: Vec<Option<Spread>>) -> Self {
        let ranges = spreads.iter().map(|spread| spread.map(|s| (s.min, s.max))).collect();
        let values = spreads.into_iter().map(|spread| spread.map(|s| s.median)).collect();
        Self { ranges, ..Self::new(name, values) }
    }

    pub(crate) fn reference(name: impl Into<String>, values: Vec<Option<f64>>) -> Self {
        Self { is_reference: true, ..Self::new(name, values) }
    }

    /// Draws this series as bars.
    pub(crate) fn bars(self) -> Self {
        Self { is_bars: true, ..self }
    }
}

impl Figure {
    /// Takes back every verdict. The values and what was found stay.
    pub(crate) fn withhold(&mut self) {
        self.statements.iter_mut().for_each(Statement::withhold);
    }

    /// The name of its file.
    pub(crate) fn file_name(&self) -> String {
        format!("{}.svg", self.name().to_lowercase().replace(' ', "-"))
    }

    fn name(&self) -> String {
        let Self { number, .. } = self;
        if number.starts_with("Table") { (*number).to_owned() } else { format!("Figure {number}") }
    }

    /// The table and what the paper says.
    pub(crate) fn text(&self) -> String {
        let head = [self.x_label].into_iter().chain(self.series.iter().map(|s| s.name.as_str()));
        let mut table = Table::new(&head.collect::<Vec<_>>());
        for (index, x) in self.x.iter().enumerate() {
            let cells = self.series.iter().map(|series| series.cell(index));
            table.row([x.clone()].into_iter().chain(cells));
        }
        let Self { title, fixed, .. } = self;
        let mut text = format!("{}. {title} ({fixed})\n\n{}", self.name(), table.render());
        for statement in &self.statements {
            // Writing to a string cannot fail.
            _ = write!(text, "\n\n{}", statement.text());
        }
        text
    }

    /// The drawing as a file of its own.
    pub(crate) fn svg(&self) -> String {
        let x_label = format!("{} ({})", self.x_label, self.fixed);
        let x = figure::Axis::categories(x_label, self.x.iter().cloned());
        let title = format!("{}. {}", self.name(), self.title);
        let drawing = figure::Figure::new(title, x, figure::Axis::linear(self.y_label));
        let drawing = drawing.describe(self.description());
        let drawing = self.series.iter().fold(drawing, |drawing, series| {
            let values = series.values.iter().map(|value| value.unwrap_or(f64::NAN));
            let line = match series.is_bars {
                true => figure::Series::bars(&series.name, values),
                false => figure::Series::over_categories(&series.name, values),
            };
            drawing.with(if series.is_reference { line.reference() } else { line })
        });
        let guides = self.guides.iter();
        let drawing = guides.fold(drawing, |drawing, guide| {
            drawing.guide(figure::Guide::Y(guide.value, guide.meaning.to_owned()))
        });
        drawing.to_svg()
    }

    /// What the statements say, for readers who cannot see the drawing.
    fn description(&self) -> String {
        let said: Vec<String> = self.statements.iter().map(|said| said.ours.clone()).collect();
        format!("{} by {}. {}", self.y_label, self.x_label, said.join(" "))
    }
}

impl Series {
    fn cell(&self, index: usize) -> String {
        let value = self.values.get(index).copied().flatten();
        let text = value.map_or("-".to_owned(), number);
        match self.ranges.get(index).copied().flatten() {
            None => text,
            Some((least, most)) => format!("{text} ({}-{})", number(least), number(most)),
        }
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
            statements: Vec::new(),
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
    fn figures_and_tables_are_named_as_the_paper_does() {
        assert_eq!(figure().file_name(), "figure-4.svg");
        let table = Figure { number: "Table 1", ..figure() };
        assert_eq!(table.file_name(), "table-1.svg");
        assert!(table.text().starts_with("Table 1. "));
    }
}
