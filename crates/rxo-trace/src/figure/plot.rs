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
    /// What it shows, in a few words.
    pub title: String,
    /// What there is to see, in a sentence, for readers who cannot.
    pub description: String,
    /// From left to right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// The values.
    pub series: Vec<Series>,
    /// Lines across it.
    pub guides: Vec<Guide>,
}

/// A line across a figure that marks one value.
#[derive(Clone, Debug, PartialEq)]
pub enum Guide {
    /// Upright, at a value of x, with its name.
    X(f64, String),
    /// Level, at a value of y, with its name.
    Y(f64, String),
}

impl Figure {
    /// A figure without series yet.
    #[must_use]
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, ..Self::default() }
    }

    /// The same with one series more.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// The same with a line across it.
    #[must_use]
    pub fn guide(mut self, guide: Guide) -> Self {
        self.guides.push(guide);
        self
    }

    /// The same with a sentence for readers who cannot see it.
    #[must_use]
    pub fn describe(self, description: impl Into<String>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// A single series needs no legend: the title says what it is.
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
