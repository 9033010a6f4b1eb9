//! Fits the paper's model of cost over the Aggregation Limit (section 5.2): `x + y/k`, where `x` does not
//! depend on aggregation and `y` is shared by `k` packets. Pure.

use serde::Serialize;
use serde_json::Value;

use crate::study::Rows;

/// The curve `x + y/k` that fits some points best.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Fit {
    /// Cost of each packet that does not depend on aggregation.
    x: f64,
    /// Cost of an aggregate that its packets share.
    y: f64,
    /// Share of the points' variance that the curve explains; 1 is all of it.
    r_squared: f64,
}

/// Adds the curve `fit` over the rows of `table` for which `is_in` is true: the median of `cost`, times `factor`,
/// by their Aggregation Limit.
pub(super) fn add(
    rows: &mut Rows,
    table: &str,
    (cost, factor): (&str, f64),
    is_in: fn(&Value) -> bool,
) {
    let of = |row: &Value| {
        let limit = row["stack"]["aggregation_limit"].as_f64()?;
        Some((limit, factor * row[cost]["median"].as_f64()?))
    };
    let all = rows.get(table).and_then(Value::as_array).into_iter().flatten();
    let is_in = |row: &&Value| row["stack"]["ack_offload"] == true && is_in(row);
    let points: Vec<_> = all.filter(is_in).filter_map(of).collect();
    rows.insert("fit".to_owned(), serde_json::to_value(Fit::of(&points)).unwrap_or_default());
}

impl Fit {
    /// Fits the curve to points `(k, cost)` by least squares. Returns `None` for fewer than three points, or
    /// if all have the same `k`.
    fn of(points: &[(f64, f64)]) -> Option<Self> {
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
        if points.len() < 3 || spread_u <= f64::EPSILON {
            return None;
        }
        let y = together / spread_u;
        let explained = if spread > 0.0 { y * together / spread } else { 1.0 };
        Some(Self { x: mean_cost - y * mean_u, y, r_squared: explained })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_a_curve_give_that_curve_and_others_are_explained_badly() {
        let points: Vec<_> =
            (1..=35).map(|k| (f64::from(k), 300.0 + 700.0 / f64::from(k))).collect();
        let fit = Fit::of(&points).unwrap();
        assert!((fit.x - 300.0).abs() < 1e-6 && (fit.y - 700.0).abs() < 1e-6, "{fit:?}");
        assert!((fit.r_squared - 1.0).abs() < 1e-9);
        let points = [(1.0, 100.0), (2.0, 900.0), (10.0, 100.0), (30.0, 900.0)];
        assert!(Fit::of(&points).unwrap().r_squared < 0.5);
        assert_eq!(Fit::of(&points[..2]), None, "two points are no proof");
        assert_eq!(Fit::of(&[(2.0, 5.0), (2.0, 4.0), (2.0, 6.0)]), None);
    }
}
