//! Axes of a figure.

/// One axis of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// The quantity on the axis, with its unit.
    pub label: String,
    /// The mapping of values to positions.
    pub scale: Scale,
    /// The range of values; `None` derives it from the data (from 0 on the y axis).
    pub range: Option<(f64, f64)>,
    /// The labelled values; `None` chooses round ones.
    pub ticks: Option<Vec<f64>>,
    /// True if values are whole numbers; then only whole numbers are labelled.
    pub is_whole: bool,
    /// True if values are shares from 0 to 1, shown as percentages.
    pub is_share: bool,
}

/// The mapping of values to positions on an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scale {
    /// Linear mapping.
    #[default]
    Linear,
    /// Logarithmic mapping. Values that are not above 0 are omitted.
    Logarithmic,
    /// One position for each name; a point's value is the index, from 0.
    Categories(Vec<String>),
}

impl Axis {
    /// Makes a linear axis.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Makes a linear axis of whole numbers.
    #[must_use]
    pub fn whole(label: impl Into<String>) -> Self {
        Self { is_whole: true, ..Self::linear(label) }
    }

    /// Makes a logarithmic axis.
    #[must_use]
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self { scale: Scale::Logarithmic, ..Self::linear(label) }
    }

    /// Makes an axis of names.
    #[must_use]
    pub fn categories<T: Into<String>>(
        label: impl Into<String>,
        names: impl IntoIterator<Item = T>,
    ) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self { scale: Scale::Categories(names), ..Self::linear(label) }
    }

    /// Makes an axis of shares from 0 to 1, shown as percentages.
    #[must_use]
    pub fn share(label: impl Into<String>) -> Self {
        Self { is_share: true, ..Self::linear(label) }
    }

    /// Sets the range.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    /// Sets the labelled values.
    #[must_use]
    pub fn ticks(self, values: impl IntoIterator<Item = f64>) -> Self {
        Self { ticks: Some(values.into_iter().collect()), ..self }
    }

    /// Returns the number of names; 0 for an axis of numbers.
    pub(super) fn category_count(&self) -> usize {
        match &self.scale {
            Scale::Categories(names) => names.len(),
            Scale::Linear | Scale::Logarithmic => 0,
        }
    }
}
