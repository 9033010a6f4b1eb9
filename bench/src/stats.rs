//! Summarizes many timings by three numbers.

/// The median of a set of timings, and their spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    /// The lower quartile.
    pub(crate) low: f64,
    /// The median.
    pub(crate) median: f64,
    /// The upper quartile.
    pub(crate) high: f64,
}

impl Summary {
    /// Summarizes `timings`; all zero if there are none.
    pub(crate) fn of(timings: &[f64]) -> Self {
        let mut sorted = timings.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: usize| {
            let last = sorted.len().saturating_sub(1);
            sorted.get(last * share / 4).copied().unwrap_or_default()
        };
        Self { low: at(1), median: at(2), high: at(3) }
    }
}

/// Between which two of `values` the median of their distribution lies, at 95 % (sign test). `None` for fewer than six:
/// of these not even the least and the most are far enough apart.
pub(crate) fn median_bounds(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    // The normal approximation: 1.96 standard deviations of a count with chance one half, corrected for continuity.
    let beyond = ((count as f64 - 1.0) / 2.0 - 0.98 * (count as f64).sqrt()).max(0.0) as usize;
    (count >= 6).then(|| (sorted[beyond], sorted[count - 1 - beyond]))
}

#[cfg(test)]
mod tests {
    use super::{Summary, median_bounds};

    #[test]
    fn the_median_of_twenty_one_lies_between_the_sixth_from_either_end() {
        let values: Vec<_> = (1..=21).rev().map(f64::from).collect();
        assert_eq!(median_bounds(&values), Some((6.0, 16.0)));
        assert_eq!(median_bounds(&values[..6]), Some((16.0, 21.0)), "the least and the most");
        assert_eq!(median_bounds(&values[..5]), None);
    }

    #[test]
    fn quartiles_of_nine() {
        let timings = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0];
        assert_eq!(Summary::of(&timings), Summary { low: 3.0, median: 5.0, high: 7.0 });
        assert_eq!(Summary::of(&[]), Summary { low: 0.0, median: 0.0, high: 0.0 });
    }
}
