//! A series: values of one kind under one name.

/// A series: points that are joined by a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Series {
    /// The name of the series in the legend.
    pub(super) name: String,
    /// `true` for a stepped line, which stays horizontal until the next point and rises or falls there. A
    /// stepped line suits counts and shares of whole numbers.
    pub(super) is_stepped: bool,
    /// The points (x, y) of the series. A point without a position on the axes is omitted, and a line has a gap there.
    pub(super) points: Vec<(f64, f64)>,
    /// The number of the colour, 0 to 7; `None` for the next unused colour.
    pub(super) colour: Option<usize>,
}

impl Series {
    /// Creates a series of points joined by a line.
    pub(crate) fn line(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), ..Self::default() }
    }

    /// Creates a series of points that is drawn as steps.
    pub(crate) fn steps(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        Self { is_stepped: true, ..Self::line(name, points) }
    }

    /// Creates a line with one value for each name of the x axis, in the order of the names.
    pub(crate) fn over_categories(
        name: impl Into<String>,
        values: impl IntoIterator<Item = f64>,
    ) -> Self {
        Self::line(name, values.into_iter().enumerate().map(|(place, value)| (place as f64, value)))
    }

    /// Returns the series with the colour of this number, 0 to 7; higher numbers wrap around.
    pub(crate) fn colour(self, colour: usize) -> Self {
        Self { colour: Some(colour), ..self }
    }
}
