//! The congestion window over time, and the throughput by `keep_every`.

use super::network::Network;
use super::sender::Sender;
use super::{keep, split};
use crate::figure::{Figure, Series};

/// Returns every figure that was measured.
pub(super) fn all(split: &[split::Row], keep: &[keep::Row]) -> Vec<Figure> {
    let windows = Sender::ALL.into_iter().filter_map(|sender| window(sender, split));
    windows.chain(kept(keep)).collect()
}

/// Draws the growth of `sender`'s congestion window over the delay; `None` if it was not measured.
fn window(sender: Sender, rows: &[split::Row]) -> Option<Figure> {
    let is_shown = |row: &&split::Row| row.sender == sender && row.network == Network::Delay;
    let rows: Vec<&split::Row> = rows.iter().filter(is_shown).collect();
    let ends = rows.iter().filter_map(|row| row.figures.window.last().map(|(at, _)| *at));
    let end = ends.reduce(f64::max)?;
    let times: Vec<f64> = (0..=POINTS).map(|n| end * f64::from(n) / f64::from(POINTS)).collect();
    let line = |row: &&split::Row| {
        let values = times.iter().map(|time| at(&row.figures.window, *time));
        Series::new(row.treatment.name(), values.collect())
    };
    Some(Figure {
        number: number(sender),
        x: times.iter().map(|time| format!("{time:.3}")).collect(),
        series: rows.iter().map(line).collect(),
        ..Figure::default()
    })
}

/// Returns the last value of `curve` up to `time`; `None` before its first point.
fn at(curve: &[(f64, f64)], time: f64) -> Option<f64> {
    curve.iter().take_while(|(at, _)| *at <= time).last().map(|(_, value)| *value)
}

const fn number(sender: Sender) -> &'static str {
    match sender {
        Sender::Counting => "window counting",
        Sender::Reno => "window reno",
        Sender::Cubic => "window cubic",
        Sender::Bbr => "window bbr",
    }
}

/// Draws the throughput for each setting of `keep_every`; `None` without any.
fn kept(rows: &[keep::Row]) -> Option<Figure> {
    let mut settings: Vec<_> = rows.iter().map(|row| row.keep_every).collect();
    settings.sort_unstable();
    settings.dedup();
    let line = |sender: Sender| {
        let rate = |setting: &Option<u16>| {
            let is_it = |row: &&keep::Row| row.sender == sender && row.keep_every == *setting;
            rows.iter().find(is_it).map(|row| row.figures.mbit_per_s)
        };
        Series::of_spreads(sender.name(), settings.iter().map(rate).collect())
    };
    (!rows.is_empty()).then(|| Figure {
        number: "keep every",
        x: settings.iter().map(|setting| keep::shown(*setting)).collect(),
        series: Sender::LINUX.into_iter().map(line).collect(),
        ..Figure::default()
    })
}

/// Points of a curve.
const POINTS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_keeps_its_value_until_the_next_point() {
        let curve = [(0.1, 10.0), (0.3, 20.0)];
        let values = [0.0, 0.1, 0.2, 0.3, 9.0].map(|time| at(&curve, time));
        assert_eq!(values, [None, Some(10.0), Some(10.0), Some(20.0), Some(20.0)]);
        assert!(all(&[], &[]).is_empty());
    }
}
