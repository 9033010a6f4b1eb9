//! What a figure shows: values of one kind, under one name.

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Points joined by a line.
    #[default]
    Line,
    /// A line that stays level until the next point, and goes there upright: for counts, and for shares
    /// of whole numbers.
    Step,
    /// Upright bars from 0; those of several series stand side by side.
    Bar,
    /// Points alone.
    Dot,
}

/// Values of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// x and y. What is not finite, or cannot stand on its axis, is left out, and a line has a gap
    /// there.
    pub points: Vec<(f64, f64)>,
    /// Which of the eight colours; `None` takes the next. Two series that belong together (measured
    /// and published) may have the same.
    pub colour: Option<usize>,
    /// Whether these are values to compare with: drawn dashed or hollow.
    pub is_reference: bool,
}

impl Series {
    /// Points joined by a line.
    #[must_use]
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), ..Self::default() }
    }

    /// A line that stays level until the next point.
    #[must_use]
    pub fn steps(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { mark: Mark::Step, ..Self::line(name, points) }
    }

    /// Points alone.
    #[must_use]
    pub fn dots(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { mark: Mark::Dot, ..Self::line(name, points) }
    }

    /// One bar for each name of the x axis, in its order; a value that is not finite has none.
    #[must_use]
    pub fn bars(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self { mark: Mark::Bar, ..Self::over_categories(name, values) }
    }

    /// A line with one value for each name of the x axis, in its order.
    #[must_use]
    pub fn over_categories(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self::line(name, values.into_iter().enumerate().map(|(place, value)| (place as f64, value)))
    }

    /// The same with a chosen colour, 0 to 7; higher ones begin again.
    #[must_use]
    pub fn colour(self, colour: usize) -> Self {
        Self { colour: Some(colour), ..self }
    }

    /// The same as values to compare with.
    #[must_use]
    pub fn reference(self) -> Self {
        Self { is_reference: true, ..self }
    }
}
