//! Fits the cost of a packet by `x + y/k` (Menon and Zwaenepoel 2008, section 5.2), where `x` does not depend on
//! aggregation and `y` is shared by the `k` packets of an aggregate. Pure.

use serde::Serialize;

/// The curve `x + y/k` that fits some points best.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Fit {
    /// Cost of each packet that does not depend on aggregation.
    pub(crate) x: f64,
    /// Cost of an aggregate that its packets share.
    pub(crate) y: f64,
    /// Share of the points' variance that the curve explains; 1 is all of it.
    r_squared: f64,
}

impl Fit {
    /// Fits the curve to points `(k, cost)` by least squares. Returns `None` for fewer than `least` points, or
    /// if all have the same `k`.
    pub(crate) fn of(points: &[(f64, f64)], least: usize) -> Option<Self> {
        let count = points.len() as f64;
        let mean_u = points.iter().map(|&(k, _)| 1.0 / k).sum::<f64>() / count;
        let mean_cost = points.iter().map(|&(_, cost)| cost).sum::<f64>() / count;
        let (mut spread_u, mut together, mut spread) = (0.0, 0.0, 0.0);
        for &(k, cost) in points {
            let (u, c) = (1.0 / k - mean_u, cost - mean_cost);
            spread_u += u * u;
            together += u * c;
            spread += c * c;
        }
        if points.len() < least || spread_u <= LEAST_SPREAD {
            return None;
        }
        let y = together / spread_u;
        let explained = if spread > 0.0 { y * together / spread } else { 1.0 };
        Some(Self { x: mean_cost - y * mean_u, y, r_squared: explained })
    }
}

/// Points with less variance over `1/k` have the same `k`.
const LEAST_SPREAD: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_a_curve_give_that_curve_and_others_are_explained_badly() {
        let points: Vec<_> =
            (1..=35).map(|k| (f64::from(k), 300.0 + 700.0 / f64::from(k))).collect();
        let fit = Fit::of(&points, 3).unwrap();
        assert!((fit.x - 300.0).abs() < 1e-6 && (fit.y - 700.0).abs() < 1e-6, "{fit:?}");
        assert!((fit.r_squared - 1.0).abs() < 1e-9);
        let points = [(1.0, 100.0), (2.0, 900.0), (10.0, 100.0), (30.0, 900.0)];
        assert!(Fit::of(&points, 3).unwrap().r_squared < 0.5);
        assert_eq!(Fit::of(&points[..2], 3), None, "two points are no proof");
        assert_eq!(Fit::of(&[(2.0, 5.0), (2.0, 4.0), (2.0, 6.0)], 3), None);
    }
}
