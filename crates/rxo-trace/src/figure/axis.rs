//! What an axis shows.

/// One axis of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it counts, with the unit.
    pub label: String,
    /// How values stand on it.
    pub scale: Scale,
    /// From where to where; `None` takes it from the data (and from 0 upwards on the y axis).
    pub range: Option<(f64, f64)>,
    /// The values named on it; `None` chooses round ones.
    pub ticks: Option<Vec<f64>>,
    /// Whether values are whole numbers, and only such are named on it.
    pub is_whole: bool,
    /// Whether values are shares from 0 to 1, to be shown as percentages.
    pub is_share: bool,
}

/// How values stand on an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scale {
    /// Equal steps.
    #[default]
    Linear,
    /// Equal factors; values that are not above 0 are left out.
    Logarithmic,
    /// One place for each name; a point's value is the place, counted from 0.
    Categories(Vec<String>),
}

impl Axis {
    /// An axis of equal steps.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// An axis of equal steps on which there are only whole numbers.
    #[must_use]
    pub fn whole(label: impl Into<String>) -> Self {
        Self { is_whole: true, ..Self::linear(label) }
    }

    /// An axis of equal factors.
    #[must_use]
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self { scale: Scale::Logarithmic, ..Self::linear(label) }
    }

    /// An axis of names.
    #[must_use]
    pub fn categories<T: Into<String>>(
        label: impl Into<String>,
        names: impl IntoIterator<Item = T>,
    ) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self { scale: Scale::Categories(names), ..Self::linear(label) }
    }

    /// An axis of shares from 0 to 1, shown as percentages.
    #[must_use]
    pub fn share(label: impl Into<String>) -> Self {
        Self { is_share: true, ..Self::linear(label) }
    }

    /// The same axis from `low` to `high`.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    /// The same axis with these values named on it.
    #[must_use]
    pub fn ticks(self, values: impl IntoIterator<Item = f64>) -> Self {
        Self { ticks: Some(values.into_iter().collect()), ..self }
    }

    /// How many names it has; 0 when it is of numbers.
    pub(super) fn category_count(&self) -> usize {
        match &self.scale {
            Scale::Categories(names) => names.len(),
            Scale::Linear | Scale::Logarithmic => 0,
        }
    }
}
