//! Medians of measurements, and their spread.

use rxo_console::numbers::{ratio, rounded};
use serde::Serialize;

/// The median and the range of several measurements of one quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The middle value of the measurements; for an even count, the mean of the two middle values.
    pub median: f64,
    /// The smallest value of the measurements.
    pub min: f64,
    /// The largest value of the measurements.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of one quantity of `samples`; `None` if there are no samples.
    pub fn over<S>(samples: &[S], value: impl Fn(&S) -> f64) -> Option<Self> {
        Self::of(samples.iter().map(value))
    }

    /// Returns the spread of `values`; `None` if there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: f64::midpoint(low, high), min, max })
    }

    /// Formats the spread as `9.5 (9.1-9.8)`: the median, then minimum and maximum in brackets.
    pub fn ranged(self, digits: usize) -> String {
        let Self { median, min, max } = self;
        format!("{median:.digits$} ({min:.digits$}-{max:.digits$})")
    }

    /// Returns the spread with all three values rounded to `decimals` decimal places.
    pub fn rounded(self, decimals: i32) -> Self {
        self.map(|value| rounded(value, decimals))
    }

    /// Returns this spread in another unit. `of` must be monotonically increasing, so that minimum and
    /// maximum keep their order.
    pub fn map(self, of: impl Fn(f64) -> f64) -> Self {
        let Self { median, min, max } = self;
        Self { median: of(median), min: of(min), max: of(max) }
    }
}

/// The median and the quartiles of several measurements of one quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quartiles {
    /// The middle value; all fields are 0 without a measurement.
    pub median: f64,
    /// The lower quartile.
    pub low: f64,
    /// The upper quartile.
    pub high: f64,
}

impl Quartiles {
    /// Returns the quartiles of `values`.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let median = Spread::of(values.iter().copied()).map_or(0.0, |spread| spread.median);
        let (low, high) = quartiles(&values).unwrap_or_default();
        Self { median, low, high }
    }

    /// Returns the quartiles of one quantity of `samples`.
    pub fn over<S>(samples: &[S], value: impl Fn(&S) -> f64) -> Self {
        Self::of(samples.iter().map(value))
    }
}

/// Returns the lower and upper quartile of `values`, interpolated linearly; `None` if there are none.
pub fn quartiles(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = |share: f64| {
        let place = share * last as f64;
        let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    Some((at(0.25), at(0.75)))
}

/// The number of bytes below which no cost per byte is computed. Bytes are counted in reads of up to 128 KiB,
/// which is 3 % of this number.
pub const LEAST_BYTES: u64 = 4 << 20;

/// Returns the rate `ours` as a share of the rate `theirs`, in words: "80 % of", or "10.1 times" where a
/// percentage would mislead.
pub fn share_of(ours: f64, theirs: f64) -> String {
    let times = ratio(ours, theirs);
    if times <= 2.0 { format!("{:.0} % of", 100.0 * times) } else { format!("{times:.1} times") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_share_is_much_larger_than_the_whole() {
        let rows = [
            (8.0, 10.0, "80 % of"),
            (12.0, 10.0, "120 % of"),
            (20.0, 10.0, "200 % of"),
            (10.08, 1.0, "10.1 times"),
        ];
        for (ours, theirs, text) in rows {
            assert_eq!(share_of(ours, theirs), text);
        }
    }

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        let rows: [(&[f64], f64, f64, f64); 4] = [
            (&[3.0], 3.0, 3.0, 3.0),
            (&[5.0, 1.0], 3.0, 1.0, 5.0),
            (&[9.0, 1.0, 2.0], 2.0, 1.0, 9.0),
            (&[4.0, 1.0, 3.0, 100.0], 3.5, 1.0, 100.0),
        ];
        for (values, median, min, max) in rows {
            assert_eq!(Spread::of(values.iter().copied()), Some(Spread { median, min, max }));
        }
    }

    #[test]
    fn half_of_the_values_lie_between_the_quartiles() {
        assert_eq!(quartiles(&[5.0, 1.0, 3.0, 2.0, 4.0]), Some((2.0, 4.0)));
        assert_eq!(quartiles(&[1.0, 2.0]), Some((1.25, 1.75)));
        assert_eq!((quartiles(&[7.0]), quartiles(&[])), (Some((7.0, 7.0)), None));
    }

    #[test]
    fn of_nothing_there_is_no_median() {
        assert_eq!(Spread::of([]), None);
    }
}
