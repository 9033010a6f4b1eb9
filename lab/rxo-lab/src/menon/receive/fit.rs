//! Fits the paper's model of cost over the Aggregation Limit (section 5.2): `x + y/k`, where `x` does not
//! depend on aggregation and `y` is shared by `k` packets. Pure.

use serde::Serialize;

/// The curve `x + y/k` that fits some points best.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(in crate::menon) struct Fit {
    /// Cost of each packet that does not depend on aggregation.
    pub(in crate::menon) x: f64,
    /// Cost of an aggregate that its packets share.
    pub(in crate::menon) y: f64,
    /// Share of the points' variance that the curve explains; 1 is all of it.
    pub(in crate::menon) r_squared: f64,
}

impl Fit {
    /// Fits the curve to points `(k, cost)` by least squares. Returns `None` for fewer than three points, or
    /// if all have the same `k`.
    pub(in crate::menon) fn of(points: &[(u16, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let inverse = |k: u16| 1.0 / f64::from(k.max(1));
        let mean_u = points.iter().map(|&(k, _)| inverse(k)).sum::<f64>() / count;
        let mean_cost = points.iter().map(|&(_, cost)| cost).sum::<f64>() / count;
        let (mut spread_u, mut together, mut spread) = (0.0, 0.0, 0.0);
        for &(k, cost) in points {
            let (u, c) = (inverse(k) - mean_u, cost - mean_cost);
            spread_u += u * u;
            together += u * c;
            spread += c * c;
        }
        if points.len() < 3 || spread_u <= f64::EPSILON {
            return None;
        }
        let y = together / spread_u;
        let x = mean_cost - y * mean_u;
        let explained = if spread > 0.0 { y * together / spread } else { 1.0 };
        Some(Self { x, y, r_squared: explained })
    }

    /// Returns the curve's cost at the limit `k`.
    pub(in crate::menon) fn at(&self, k: u16) -> f64 {
        self.x + self.y / f64::from(k.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_a_curve_give_that_curve() {
        let points: Vec<_> = (1..=35).map(|k| (k, 300.0 + 700.0 / f64::from(k))).collect();
        let fit = Fit::of(&points).unwrap();
        assert!((fit.x - 300.0).abs() < 1e-6 && (fit.y - 700.0).abs() < 1e-6, "{fit:?}");
        assert!((fit.r_squared - 1.0).abs() < 1e-9);
        assert!((fit.at(7) - 400.0).abs() < 1e-6);
    }

    #[test]
    fn points_on_no_curve_are_explained_badly() {
        let points = [(1, 100.0), (2, 900.0), (10, 100.0), (30, 900.0)];
        assert!(Fit::of(&points).unwrap().r_squared < 0.5);
    }

    #[test]
    fn two_points_are_no_proof() {
        assert_eq!(Fit::of(&[(1, 5.0), (2, 4.0)]), None);
        assert_eq!(Fit::of(&[(2, 5.0), (2, 4.0), (2, 6.0)]), None);
    }
}
