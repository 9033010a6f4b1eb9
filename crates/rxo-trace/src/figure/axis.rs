//! The axes of a figure.

/// An axis of a figure: its label, its scale, and its ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// The quantity on the axis with its unit, as it is written beside the axis.
    pub label: String,
    /// The mapping of values to positions: linear, logarithmic, or a position for each name.
    pub scale: Scale,
    /// The range of values on the axis; `None` derives it from the data, and lets a y axis begin at 0.
    pub range: Option<(f64, f64)>,
    /// The values at which the axis is labelled; `None` chooses round ones.
    pub ticks: Option<Vec<f64>>,
    /// `true` if the values are whole numbers; then only whole numbers are labelled.
    pub is_whole: bool,
    /// `true` if the values are shares from 0 to 1, which are shown as percentages.
    pub is_share: bool,
}

/// The mapping of values to positions on an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scale {
    /// Equal distances on the axis are equal differences of values.
    #[default]
    Linear,
    /// Equal distances on the axis are equal ratios of values. Values of 0 and negative values are omitted.
    Logarithmic,
    /// One position for each name; the value of a point is the index of its name, from 0.
    Categories(Vec<String>),
}

impl Axis {
    /// Creates a linear axis.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Creates a linear axis of whole numbers.
    #[must_use]
    pub fn whole(label: impl Into<String>) -> Self {
        Self { is_whole: true, ..Self::linear(label) }
    }

    /// Creates a logarithmic axis.
    #[must_use]
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self { scale: Scale::Logarithmic, ..Self::linear(label) }
    }

    /// Creates an axis with one position for each name.
    #[must_use]
    pub fn categories<T: Into<String>>(
        label: impl Into<String>,
        names: impl IntoIterator<Item = T>,
    ) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self { scale: Scale::Categories(names), ..Self::linear(label) }
    }

    /// Creates an axis of shares from 0 to 1, shown as percentages.
    #[must_use]
    pub fn share(label: impl Into<String>) -> Self {
        Self { is_share: true, ..Self::linear(label) }
    }

    /// Returns the axis with the range from `low` to `high`.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    /// Returns the axis with labels at `values`.
    #[must_use]
    pub fn ticks(self, values: impl IntoIterator<Item = f64>) -> Self {
        Self { ticks: Some(values.into_iter().collect()), ..self }
    }

    /// Returns the number of names on the axis; 0 for an axis of numbers.
    pub(super) fn category_count(&self) -> usize {
        match &self.scale {
            Scale::Categories(names) => names.len(),
            Scale::Linear | Scale::Logarithmic => 0,
        }
    }
}
