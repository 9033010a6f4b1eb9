//! The growth of a series, by the estimator of Theil and Sen: the median of the slopes between all pairs of
//! points.
//!
//! It tolerates one arbitrary outlier in four points. The confidence interval is Sen's (1968, section 4),
//! from the variance of Kendall's count of pairs. Pure.

use serde::Serialize;

/// Fewest points that give a meaningful slope.
pub(super) const LEAST_POINTS: usize = 8;
/// Quantile of the normal distribution for a 95 % interval.
const Z: f64 = 1.96;

/// Growth of the series per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Slope {
    /// Median slope of all pairs of points.
    pub(super) median: f64,
    /// Lower bound of the 95 % interval.
    pub(super) low: f64,
    /// Upper bound of the 95 % interval.
    pub(super) high: f64,
}

/// Returns the slope of points `(second, value)`; `None` for fewer than [`LEAST_POINTS`]. Time and memory
/// grow with the square of the number of points.
pub(super) fn slope(points: &[(f64, f64)]) -> Option<Slope> {
    if points.len() < LEAST_POINTS {
        return None;
    }
    let mut slopes = Vec::new();
    for (n, (t, value)) in points.iter().enumerate() {
        let later = points[n + 1..].iter().filter(|(later, _)| later > t);
        slopes.extend(later.map(|(later, other)| (other - value) / (later - t)));
    }
    slopes.sort_by(f64::total_cmp);
    let (pairs, n) = (slopes.len() as f64, points.len() as f64);
    let width = Z * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let at = |rank: f64| {
        let last = slopes.len().checked_sub(1)?;
        slopes.get((rank.max(0.0) as usize).min(last)).copied()
    };
    Some(Slope {
        median: at(pairs / 2.0)?,
        low: at((pairs - width) / 2.0)?,
        high: at((pairs + width) / 2.0)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl Iterator<Item = f64>) -> Slope {
        let points: Vec<_> = values.enumerate().map(|(at, value)| (at as f64, value)).collect();
        slope(&points).unwrap()
    }

    #[test]
    fn a_constant_does_not_grow() {
        assert_eq!(of([7.0; 20].into_iter()), Slope { median: 0.0, low: 0.0, high: 0.0 });
    }

    #[test]
    fn a_line_grows_by_its_slope() {
        let slope = of((0..20).map(|at| 3.0 * f64::from(at)));
        assert!((slope.median - 3.0).abs() < 1e-9 && slope.low > 2.9 && slope.high < 3.1);
    }

    #[test]
    fn single_peaks_change_nothing() {
        let slope = of((0..40).map(|at| if at % 7 == 3 { 1e6 } else { 5.0 }));
        assert_eq!(slope.median, 0.0);
        assert!(slope.low <= 0.0 && slope.high >= 0.0, "{slope:?}");
    }

    #[test]
    fn noise_around_a_constant_is_no_growth_and_around_a_line_it_is() {
        // A linear congruential generator.
        let mut state = 1_u64;
        let mut noise = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / f64::from(1 << 24) - 0.5
        };
        let flat = of((0..60).map(|_| 100.0 + noise()));
        assert!(flat.low < 0.0 && flat.high > 0.0, "{flat:?}");
        let grown = of((0..60).map(|at| 0.1 * f64::from(at) + noise()));
        assert!(grown.low > 0.05 && grown.high < 0.15, "{grown:?}");
    }

    #[test]
    fn a_leak_of_one_descriptor_in_ten_rounds_is_seen() {
        assert!(of((0..60).map(|at| f64::from(at / 10))).low > 0.05);
    }

    #[test]
    fn few_points_have_no_slope() {
        assert_eq!(slope(&[(0.0, 1.0); LEAST_POINTS - 1]), None);
    }
}
