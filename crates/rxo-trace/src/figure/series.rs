//! A series: values of one kind under one name.

/// The way in which a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Points that are joined by a line.
    #[default]
    Line,
    /// A line that stays horizontal until the next point and rises or falls there: for counts, and
    /// for shares of whole numbers.
    Step,
    /// Vertical bars from 0. The bars of several series stand side by side.
    Bar,
    /// Vertical bars on top of each other, those of the first series at the bottom: parts of a whole.
    Stack,
    /// Boxplots: a box from quartile to quartile, a line at the median, and the range. The boxes of several series stand
    /// side by side.
    Box,
}

/// A series: values of one kind, with the way in which they are drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The name of the series in the legend.
    pub name: String,
    /// The way in which the series is drawn.
    pub mark: Mark,
    /// The points (x, y) of the series. A point without a position on the axes is omitted, and a line has a gap there.
    pub points: Vec<(f64, f64)>,
    /// The number of the colour, 0 to 7; `None` for the next unused one. Two related series (measured and
    /// published) may have the same colour.
    pub colour: Option<usize>,
    /// `true` for reference values, which are drawn dashed or hollow.
    pub is_reference: bool,
    /// The smallest and largest value around each point, drawn as a line with caps. May be shorter than `points`.
    pub ranges: Vec<Option<(f64, f64)>>,
    /// The quartiles around each point, the edges of its box. May be shorter than `points`.
    pub quartiles: Vec<Option<(f64, f64)>>,
    /// For each point, `true` if it is invalid: measured under wrong conditions. Invalid points are drawn as
    /// crosses, no line goes through them, and the axes are not extended for them: a point beyond the end of
    /// an axis is drawn as an arrow. May be shorter than `points`.
    pub invalid: Vec<bool>,
}

impl Series {
    /// Creates a series of points joined by a line.
    #[must_use]
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), ..Self::default() }
    }

    /// Creates a series of points that is drawn as steps.
    #[must_use]
    pub fn steps(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { mark: Mark::Step, ..Self::line(name, points) }
    }

    /// Creates a series with one bar for each name of the x axis, in its order; infinite values have no bar.
    #[must_use]
    pub fn bars(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self { mark: Mark::Bar, ..Self::over_categories(name, values) }
    }

    /// Creates a series with one part of a stack for each name of the x axis, in the order of the names.
    #[must_use]
    pub fn stack(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self { mark: Mark::Stack, ..Self::over_categories(name, values) }
    }

    /// Creates a series with a box for each name of the x axis, in its order: medians, and the quartiles around them.
    /// [`Series::ranges`] sets the smallest and largest values.
    #[must_use]
    pub fn boxes(
        name: impl Into<String>,
        medians: impl IntoIterator<Item = f64>,
        quartiles: Vec<Option<(f64, f64)>>,
    ) -> Self {
        Self { mark: Mark::Box, quartiles, ..Self::over_categories(name, medians) }
    }

    /// Creates a line with one value for each name of the x axis, in its order.
    #[must_use]
    pub fn over_categories(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self::line(name, values.into_iter().enumerate().map(|(place, value)| (place as f64, value)))
    }

    /// Returns the series with the colour of this number, 0 to 7; higher numbers wrap around.
    #[must_use]
    pub fn colour(self, colour: usize) -> Self {
        Self { colour: Some(colour), ..self }
    }

    /// Returns the series, marked as reference values.
    #[must_use]
    pub fn reference(self) -> Self {
        Self { is_reference: true, ..self }
    }

    /// Returns the series with the smallest and largest value around each point.
    #[must_use]
    pub fn ranges(self, ranges: impl IntoIterator<Item = Option<(f64, f64)>>) -> Self {
        Self { ranges: ranges.into_iter().collect(), ..self }
    }

    /// Returns the series with a flag for each point, which is `true` if the point is invalid.
    #[must_use]
    pub fn invalid(self, invalid: impl IntoIterator<Item = bool>) -> Self {
        Self { invalid: invalid.into_iter().collect(), ..self }
    }

    pub(super) fn is_invalid(&self, place: usize) -> bool {
        self.invalid.get(place).copied().unwrap_or_default()
    }

    pub(super) fn range(&self, place: usize) -> Option<(f64, f64)> {
        self.ranges.get(place).copied().flatten()
    }

    pub(super) fn has_invalid(&self) -> bool {
        (0..self.points.len()).any(|place| self.is_invalid(place))
    }

    /// Returns the points and ends of ranges that the axes must include.
    pub(super) fn extents(&self) -> impl Iterator<Item = (f64, f64)> {
        let valid = self.points.iter().enumerate().filter(|(place, _)| !self.is_invalid(*place));
        valid.flat_map(|(place, &(x, y))| {
            let (low, high) = self.range(place).unwrap_or((y, y));
            [(x, y), (x, low), (x, high)]
        })
    }
}
