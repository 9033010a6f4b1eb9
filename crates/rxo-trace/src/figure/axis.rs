//! The axes of a figure.

/// An axis of a figure: its label, its scale, and its ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Axis {
    /// The quantity on the axis with its unit, as it is written beside the axis.
    pub(crate) label: String,
    /// The mapping of values to positions: linear, logarithmic, or a position for each name.
    pub(crate) scale: Scale,
    /// The range of values on the axis; `None` derives it from the data, and lets a y axis begin at 0.
    pub(crate) range: Option<(f64, f64)>,
    /// The values at which the axis is labelled; `None` chooses round values.
    pub(crate) ticks: Option<Vec<f64>>,
    /// `true` if the values are whole numbers. The labels are then whole numbers, too.
    pub(crate) is_whole: bool,
    /// `true` if the values are shares from 0 to 1, which are shown as percentages.
    pub(crate) is_share: bool,
}

/// The mapping of values to positions on an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Scale {
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
    pub(crate) fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Creates a logarithmic axis.
    pub(crate) fn logarithmic(label: impl Into<String>) -> Self {
        Self { scale: Scale::Logarithmic, ..Self::linear(label) }
    }

    /// Creates an axis with one position for each name.
    pub(crate) fn categories<T: Into<String>>(
        label: impl Into<String>,
        names: impl IntoIterator<Item = T>,
    ) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self { scale: Scale::Categories(names), ..Self::linear(label) }
    }

    /// Creates an axis of shares from 0 to 1, shown as percentages.
    pub(crate) fn share(label: impl Into<String>) -> Self {
        Self { is_share: true, ..Self::linear(label) }
    }

    /// Returns the axis with the range from `low` to `high`.
    pub(crate) fn between(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    /// Returns the axis with labels at `values`.
    pub(crate) fn ticks(self, values: impl IntoIterator<Item = f64>) -> Self {
        Self { ticks: Some(values.into_iter().collect()), ..self }
    }
}
