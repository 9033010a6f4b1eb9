//! Figures with two axes.

use super::axis::Axis;
use super::draw::{Canvas, Draw, EDGE, Naming, Size, document};
use super::frame::Frame;
use super::legend::{self, Entry};
use super::marks;
use super::numbers::full;
use super::series::Series;

/// A figure with two axes and any number of series.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figure {
    /// The title of the figure, in a few words.
    pub(crate) title: String,
    /// A sentence that describes the figure for readers who cannot see it.
    pub(crate) description: String,
    /// The horizontal axis of the figure.
    pub(crate) x: Axis,
    /// The vertical axis of the figure.
    pub(crate) y: Axis,
    /// The series of values that the figure shows.
    pub(crate) series: Vec<Series>,
    /// Lines across the figure that mark one value each.
    pub(crate) guides: Vec<Guide>,
}

/// A line across a figure that marks one value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Guide {
    /// A vertical line at a value of x, with its name.
    X(f64, String),
    /// A horizontal line at a value of y, with its name.
    Y(f64, String),
}

impl Figure {
    /// Creates a figure without series.
    pub(crate) fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, ..Self::default() }
    }

    /// Returns the figure with another series.
    pub(crate) fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Returns the figure with another guide.
    pub(crate) fn guide(mut self, guide: Guide) -> Self {
        self.guides.push(guide);
        self
    }

    /// Returns the figure with this description, for readers who cannot see it.
    pub(crate) fn describe(self, description: impl Into<String>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// Returns the entries of the legend. A single series has no entry, because the title of the figure names
    /// the series. Horizontal guides are named in the legend, where their names cannot cover data.
    fn legend(&self) -> Vec<Entry<'_>> {
        let series = self.series.iter().enumerate();
        let series = series.map(|(index, series)| Entry::Series {
            series,
            colour: series.colour.unwrap_or(index),
        });
        let series = series.filter(|_| self.series.len() > 1);
        let levels = self.guides.iter().filter_map(|guide| match guide {
            Guide::Y(value, name) => Some((*value, name)),
            Guide::X(..) => None,
        });
        let count = levels.clone().count();
        let levels = levels.map(|(value, name)| match count {
            1 => Entry::Guide(name.clone()),
            _ => Entry::Guide(format!("{name} ({})", full(value))),
        });
        series.chain(levels).collect()
    }
}

impl Draw for Figure {
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, size: Size) -> String {
        let naming = Naming { title: &self.title, description: &self.description };
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let mut canvas = Canvas::default();
        legend::draw(&mut canvas, &self.legend(), width - 2.0 * EDGE);
        let frame = Frame::fit(self, canvas.top, (width, height));
        frame.draw(&mut canvas.svg, self);
        marks::draw(&mut canvas.svg, &frame, &self.series);
        frame.draw_guides(&mut canvas.svg, &self.guides);
        document(canvas.svg, naming, (width, height))
    }
}
