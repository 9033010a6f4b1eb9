//! The confidence interval of a median.

/// Returns two elements of `values` between which the median of the underlying distribution lies with 95 %
/// confidence (sign test). `None` for fewer than six values: even the smallest and the largest of five do not
/// enclose the median with that confidence.
#[must_use]
pub fn median_bounds(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    // The normal approximation: 1.96 standard deviations of a count with chance one half, corrected for continuity.
    let beyond = ((count as f64 - 1.0) / 2.0 - 0.98 * (count as f64).sqrt()).max(0.0) as usize;
    (count >= 6).then(|| (sorted[beyond], sorted[count - 1 - beyond]))
}

#[cfg(test)]
mod tests {
    use super::median_bounds;

    #[test]
    fn the_median_of_twenty_one_lies_between_the_sixth_from_either_end() {
        let values: Vec<_> = (1..=21).rev().map(f64::from).collect();
        assert_eq!(median_bounds(&values), Some((6.0, 16.0)));
        assert_eq!(median_bounds(&values[..6]), Some((16.0, 21.0)), "the least and the most");
        assert_eq!(median_bounds(&values[..5]), None);
    }
}
