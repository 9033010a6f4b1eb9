//! Figures with two axes.

use super::axis::Axis;
use super::draw::{Canvas, Draw, EDGE, Naming, Place, Size, document};
use super::frame::Frame;
use super::legend::{self, Entry};
use super::marks;
use super::series::Series;

/// A figure with two axes and any number of series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// The title, in a few words.
    pub title: String,
    /// A sentence that describes the figure for readers who cannot see it.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The values.
    pub series: Vec<Series>,
    /// Lines across the figure.
    pub guides: Vec<Guide>,
}

/// A line across a figure that marks one value.
#[derive(Clone, Debug, PartialEq)]
pub enum Guide {
    /// A vertical line at a value of x, with its name.
    X(f64, String),
    /// A horizontal line at a value of y, with its name.
    Y(f64, String),
}

impl Figure {
    /// Makes a figure without series.
    #[must_use]
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, ..Self::default() }
    }

    /// Adds a series.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a guide.
    #[must_use]
    pub fn guide(mut self, guide: Guide) -> Self {
        self.guides.push(guide);
        self
    }

    /// Sets the description for readers who cannot see the figure.
    #[must_use]
    pub fn describe(self, description: impl Into<String>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// The legend; empty for a single series, which the title names.
    fn legend(&self) -> Vec<Entry<'_>> {
        if self.series.len() < 2 {
            return Vec::new();
        }
        let entries = self.series.iter().enumerate();
        entries
            .map(|(index, series)| Entry { series, colour: series.colour.unwrap_or(index) })
            .collect()
    }
}

impl Draw for Figure {
    fn title(&self) -> &str {
        &self.title
    }

    fn draw(&self, size: Size, place: Place) -> String {
        let naming = Naming { title: &self.title, description: &self.description };
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let mut canvas = Canvas::begin(naming, place, width);
        legend::draw(&mut canvas, &self.legend(), width - 2.0 * EDGE);
        let frame = Frame::fit(self, canvas.top, (width, height));
        frame.draw(&mut canvas.svg, self);
        marks::draw(&mut canvas.svg, &frame, &self.series);
        frame.draw_guides(&mut canvas.svg, &self.guides);
        document(canvas.svg, naming, (width, height), place)
    }
}
