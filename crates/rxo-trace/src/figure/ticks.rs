//! Chooses round values for axes.

/// Returns round values from `low` to `high`, about `wanted` of them. The distance between neighbouring values
/// is `1`, `2` or `5` times a power of ten.
pub(super) fn linear(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let step = round_step((high - low) / wanted.max(1) as f64);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).take(MOST).map(|index| index as f64 * step).collect()
}

/// Returns round values from `low` to `high` for a logarithmic axis: 1, 2 and 5 times each power of ten, or
/// only the powers of ten if there are many.
pub(super) fn logarithmic(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let within: &[f64] = if last - first <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let powers =
        (first..=last).flat_map(|power| within.iter().map(move |digit| digit * 10_f64.powi(power)));
    powers.filter(|&value| value >= low * 0.999 && value <= high * 1.001).take(MOST).collect()
}

/// Returns the round value at or above `high` at which an axis from `low` ends.
pub(super) fn round_end(low: f64, high: f64, wanted: usize) -> f64 {
    let step = round_step((high - low) / wanted.max(1) as f64);
    (high / step - 1e-9).ceil() * step
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    if !(step.is_finite() && step > 1e-300) {
        return 1.0;
    }
    let power = 10_f64.powf(step.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= step * 0.999_999);
    digit.unwrap_or(10.0) * power
}

const MOST: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!(linear(0.0, 100.0, 5), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(linear(0.0, 7.0, 4), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(linear(-1.0, 1.0, 4), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(logarithmic(1.0, 10.0), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(logarithmic(1.0, 1e6).len(), 7);
    }

    #[test]
    fn an_axis_ends_on_a_round_value() {
        assert!((round_end(0.0, 87.0, 5) - 100.0).abs() < 1e-9);
        assert!((round_end(0.0, 0.013, 5) - 0.015).abs() < 1e-9);
    }

    #[test]
    fn no_range_makes_it_run_away() {
        for (low, high) in [(0.0, 0.0), (0.0, f64::MAX), (f64::NAN, 1.0), (0.0, 1e-320)] {
            assert!(linear(low, high, 5).len() <= MOST);
        }
        assert!(logarithmic(1e-300, 1e300).len() <= MOST);
    }
}
