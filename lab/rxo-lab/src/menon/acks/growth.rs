//! Finds the time at which a connection reached full rate, from its delivered bytes over time. Pure.

use std::time::Duration;

use rxo_testbed::traffic::WindowPoint;

/// Returns the time from the first payload until the rate over a window of `over` first reached `share` of
/// `bytes_per_s`; `None` if it never did. Points are in the order of time.
pub(super) fn reached(
    points: &[WindowPoint],
    bytes_per_s: f64,
    share: f64,
    over: Duration,
) -> Option<Duration> {
    let first = points.iter().position(|point| point.delivered_bytes > 0)?;
    let begin = points[first].at;
    let points = &points[first..];
    points.iter().enumerate().find_map(|(index, from)| {
        let to = points[index..].iter().find(|point| point.at >= from.at + over)?;
        let bytes = (to.delivered_bytes - from.delivered_bytes) as f64;
        let rate = bytes / (to.at - from.at).as_secs_f64();
        (rate >= share * bytes_per_s).then(|| from.at - begin)
    })
}

/// Returns the payload rate from the first delivery to the last point, in bytes per second; 0 without
/// payload.
pub(super) fn mean_bytes_per_s(points: &[WindowPoint]) -> f64 {
    let first = points.iter().find(|point| point.delivered_bytes > 0);
    let (Some(first), Some(last)) = (first, points.last()) else { return 0.0 };
    let time = last.at.saturating_sub(first.at).as_secs_f64();
    if time > 0.0 { last.delivered_bytes as f64 / time } else { 0.0 }
}

/// Returns the congestion window over time for a drawing, as pairs of seconds since the first point and
/// segments; at most `most` points.
pub(super) fn curve(points: &[WindowPoint], segment_bytes: f64, most: usize) -> Vec<(f64, f64)> {
    let Some(first) = points.first() else { return Vec::new() };
    let step = points.len().div_ceil(most.max(1)).max(1);
    let shown = points.iter().step_by(step);
    shown
        .map(|point| {
            let at = point.at.saturating_sub(first.at).as_secs_f64();
            ((at * 1_000.0).round() / 1_000.0, (point.cwnd_bytes as f64 / segment_bytes).round())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// Makes a point every 10 ms: no payload for 30 ms, then in each step 100 bytes more than in the step
    /// before.
    fn growing() -> Vec<WindowPoint> {
        let mut delivered_bytes = 0;
        let points = (0..40_u64).map(|index| {
            delivered_bytes += index.saturating_sub(2) * 100;
            WindowPoint { at: millis(index * 10), cwnd_bytes: index * 1_000, delivered_bytes }
        });
        points.collect()
    }

    #[test]
    fn full_rate_is_found_where_it_begins_and_counts_from_the_first_byte() {
        // 1,000 bytes per step are 100,000 bytes per second: the step to the 12th point is the tenth after
        // the first payload.
        let reached = |share| reached(&growing(), 100_000.0, share, millis(10));
        assert_eq!(reached(1.0), Some(millis(80)));
        assert_eq!(reached(0.5), Some(millis(30)));
        assert_eq!(reached(4.0), None);
    }

    #[test]
    fn a_short_train_is_no_rate() {
        let mut points = growing();
        points.iter_mut().skip(5).for_each(|point| point.delivered_bytes = 2_000);
        assert!(reached(&points, 100_000.0, 1.0, millis(10)).is_some());
        assert_eq!(reached(&points, 100_000.0, 1.0, millis(50)), None);
    }

    #[test]
    fn the_mean_leaves_out_the_time_before_the_first_byte() {
        let points = [(0, 0), (500, 100), (1_500, 4_100)].map(|(at, delivered_bytes)| {
            WindowPoint { at: millis(at), cwnd_bytes: 0, delivered_bytes }
        });
        assert!((mean_bytes_per_s(&points) - 4_100.0).abs() < 1e-9);
        assert!(mean_bytes_per_s(&points[..1]) < 1e-9);
    }

    #[test]
    fn a_curve_has_no_more_points_than_asked_for() {
        let curve = curve(&growing(), 1_000.0, 10);
        assert_eq!(curve.len(), 10);
        assert_eq!(curve[1], (0.04, 4.0));
        assert!(super::curve(&[], 1.0, 10).is_empty());
    }
}
