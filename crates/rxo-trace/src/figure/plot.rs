//! Figures with two axes.

use super::axis::Axis;
use super::draw::{Canvas, Draw, EDGE, Naming, Place, Size, document};
use super::frame::Frame;
use super::legend::{self, Entry};
use super::marks;
use super::numbers::full;
use super::series::Series;

/// A figure with two axes and any number of series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// The title of the figure, in a few words.
    pub title: String,
    /// A sentence that describes the figure for readers who cannot see it.
    pub description: String,
    /// The horizontal axis of the figure.
    pub x: Axis,
    /// The vertical axis of the figure.
    pub y: Axis,
    /// The series of values that the figure shows.
    pub series: Vec<Series>,
    /// Lines across the figure that mark one value each.
    pub guides: Vec<Guide>,
    /// Brackets beside stacks, which name parts of them.
    pub brackets: Vec<Bracket>,
}

/// A bracket beside a stack, with the name and the size of the enclosed part.
#[derive(Clone, Debug, PartialEq)]
pub struct Bracket {
    /// The position of the stack on the x axis.
    pub x: f64,
    /// The value at which the enclosed part begins.
    pub from: f64,
    /// The value at which the enclosed part ends.
    pub to: f64,
    /// The name of the enclosed part.
    pub name: String,
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
    /// Creates a figure without series.
    ///
    /// # Examples
    /// ```
    /// use rxo_trace::figure::{Axis, Draw, Figure, Series};
    ///
    /// let (x, y) = (Axis::whole("segments"), Axis::linear("ns a packet"));
    /// let figure = Figure::new("Cost", x, y).with(Series::line("rxo", [(1.0, 90.0), (2.0, 60.0)]));
    /// assert!(figure.to_svg().starts_with("<svg"));
    /// ```
    #[must_use]
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, ..Self::default() }
    }

    /// Returns the figure with another series.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Returns the figure with another guide.
    #[must_use]
    pub fn guide(mut self, guide: Guide) -> Self {
        self.guides.push(guide);
        self
    }

    /// Returns the figure with another bracket.
    #[must_use]
    pub fn bracket(mut self, bracket: Bracket) -> Self {
        self.brackets.push(bracket);
        self
    }

    /// Returns the figure with this description, for readers who cannot see it.
    #[must_use]
    pub fn describe(self, description: impl Into<String>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// Returns the entries of the legend. A single series has no entry, because the title names it. Horizontal guides
    /// are named in the legend, where their names cannot cover data.
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
        let invalid = self.series.iter().any(Series::has_invalid).then_some(Entry::Invalid);
        series.chain(levels).chain(invalid).collect()
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
        marks::draw(&mut canvas.svg, &frame, &self.series, &self.brackets);
        frame.draw_guides(&mut canvas.svg, &self.guides);
        document(canvas.svg, naming, (width, height), place)
    }
}
