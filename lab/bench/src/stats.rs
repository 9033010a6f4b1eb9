//! Summarizes many timings by median and quartiles.

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

#[cfg(test)]
mod tests {
    use super::Summary;

    #[test]
    fn quartiles_of_nine() {
        let timings = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0];
        assert_eq!(Summary::of(&timings), Summary { low: 3.0, median: 5.0, high: 7.0 });
        assert_eq!(Summary::of(&[]), Summary { low: 0.0, median: 0.0, high: 0.0 });
    }
}
