//! Projects the measured cost of packets to other rates.
//!
//! The costs of all levels lie on a line over `1/k`, the deliveries per packet: a packet from the wire costs
//! `x + y/k` (Menon & Zwaenepoel 2008, section 5.2). Coalescing cannot change `x`, and divides `y`. The line
//! is fitted here; `rxo_trace::projection` extrapolates it.

use rxo_console::numbers::rounded;
use rxo_trace::projection::{Costs, Projection};
use rxo_trace::report::{Outcome, Traffic};
use serde::Serialize;

use super::cost::{Cost, Pace};
use super::level::Level;
use crate::claim::Claim;
use crate::figure::{Figure, Guide, Series};

/// Projected cost of each level at rates from 1 to 400 Gbit/s.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Faster {
    /// Part of a packet's cost that coalescing cannot change, in nanoseconds.
    pub(super) x_ns: f64,
    /// Part of a packet's cost that coalescing divides, in nanoseconds.
    pub(super) y_ns: f64,
    /// Payload size of the costs, in KB.
    pub(super) payload_kb: usize,
    pub(super) levels: Vec<LevelFaster>,
}

/// The projection of one level.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LevelFaster {
    pub(super) level: Level,
    pub(super) projection: Projection,
}

impl Faster {
    /// Makes the projection from the costs without a rate limit and with the largest payload; with small
    /// payloads waking the receiver for nearly every write dominates the cost. `None` if there are too few
    /// costs, or they do not fall with `k`.
    pub(super) fn of(costs: &[Cost]) -> Option<Self> {
        let costs = || costs.iter().filter(|cost| cost.pace == Pace::Unlimited && cost.is_valid);
        let payload_kb = costs().map(|cost| cost.payload_kb).max()?;
        let costs: Vec<&Cost> = costs().filter(|cost| cost.payload_kb == payload_kb).collect();
        let (x_ns, y_ns) = line_over_inverse(
            costs.iter().map(|cost| (cost.packets_per_delivery.median, cost.ns_per_packet.median)),
        )?;
        if x_ns < 0.0 || y_ns <= 0.0 {
            return None;
        }
        let packet_bytes = mean(costs.iter().map(|cost| cost.packet_bytes))?;
        let of = |level: Level| {
            let ks = costs.iter().filter(|cost| cost.level == level);
            let k = mean(ks.map(|cost| cost.packets_per_delivery.median))?;
            // All packets have one size here, so the part that is not divided cannot be split further.
            let fitted = Costs { packet_ns: y_ns, device_ns: x_ns, byte_ns: 0.0, coalesce_ns: 0.0 };
            let projection = project(&fitted, packet_bytes, k)?;
            Some(LevelFaster { level, projection })
        };
        let levels: Vec<LevelFaster> = Level::ALL.into_iter().filter_map(of).collect();
        (!levels.is_empty()).then(|| Self {
            x_ns: rounded(x_ns, 1),
            y_ns: rounded(y_ns, 1),
            payload_kb,
            levels,
        })
    }

    /// Draws the busy cores by rate.
    pub(super) fn figure(&self) -> Figure {
        let rates = self.levels.first().map_or(&[][..], |level| &level.projection.points);
        let line = |level: &LevelFaster| {
            let cores = level.projection.points.iter().map(|point| Some(point.cores_with));
            Series::new(level.level.name(), cores.collect())
        };
        let five = self.levels.iter().find(|level| level.level == Level::Rsc5);
        let saved = five.map(|level| 100.0 * level.projection.saved);
        let Self { x_ns, y_ns, payload_kb, .. } = self;
        let detail =
            format!("A packet costs {x_ns} ns + {y_ns} ns / k, in writes of {payload_kb} KB.");
        Figure {
            number: "projection",
            x: rates.iter().map(|point| point.rate_gbit_per_s.to_string()).collect(),
            series: self.levels.iter().map(line).collect(),
            guides: vec![Guide { value: 1.0, meaning: "one core" }],
            claims: vec![Claim::new("rsc.projection", saved, detail)],
            ..Figure::default()
        }
    }
}

/// Applies the model to packets of `packet_bytes`, with `k` of them per delivery.
fn project(costs: &Costs, packet_bytes: f64, k: f64) -> Option<Projection> {
    // The projection takes whole numbers; a million packets make the rounding error negligible.
    let packets = 1_000_000_u64;
    let scaled = |value: f64| (value * packets as f64).round() as u64;
    let traffic = Traffic { packets, bytes: scaled(packet_bytes), ..Traffic::default() };
    let deliveries = scaled(1.0 / k.max(1.0));
    let outcome = Outcome { packets, deliveries, ..Outcome::default() };
    Projection::of(costs, "fitted to the costs measured here, all levels", &traffic, &outcome)
}

/// Fits the line `x + y/k` to the points by least squares; `None` without two different `k`.
fn line_over_inverse(points: impl Iterator<Item = (f64, f64)>) -> Option<(f64, f64)> {
    let points: Vec<(f64, f64)> =
        points.filter(|(k, _)| *k > 0.0).map(|(k, ns)| (1.0 / k, ns)).collect();
    let (inverse, ns) = (mean(points.iter().map(|p| p.0))?, mean(points.iter().map(|p| p.1))?);
    let spread: f64 = points.iter().map(|p| (p.0 - inverse).powi(2)).sum();
    let common: f64 = points.iter().map(|p| (p.0 - inverse) * (p.1 - ns)).sum();
    let slope = (spread > 1e-9).then(|| common / spread)?;
    Some((ns - slope * inverse, slope))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rxo_demo::stats::Spread;

    fn cost(level: Level, k: f64, ns_per_packet: f64) -> Cost {
        let spread = |value| Spread { median: value, min: value, max: value };
        Cost {
            pace: Pace::Unlimited,
            payload_kb: 8,
            level,
            ns_per_byte: spread(1.0),
            ns_per_packet: spread(ns_per_packet),
            core_percent: spread(100.0),
            gbit_per_s: spread(5.0),
            packets_per_delivery: spread(k),
            packet_bytes: 1_500.0,
            rounds: 1,
            is_valid: true,
        }
    }

    #[test]
    fn costs_on_a_line_give_back_the_line() {
        let costs = [
            cost(Level::Regular, 1.0, 1_000.0),
            cost(Level::Rsc2, 2.0, 600.0),
            cost(Level::Rsc5, 4.0, 400.0),
        ];
        let faster = Faster::of(&costs).unwrap();
        assert!((faster.x_ns - 200.0).abs() < 1e-6 && (faster.y_ns - 800.0).abs() < 1e-6);
        // 12,000 bits in a microsecond are 12 Gbit/s.
        let regular = &faster.levels[0].projection;
        assert!((regular.one_core_with_gbit_per_s - 12.0).abs() < 1e-6, "{regular:?}");
        assert!((faster.levels[2].projection.saved - 0.6).abs() < 1e-6);
        let figure = faster.figure();
        assert_eq!(
            (figure.series[2].name.as_str(), figure.verdicts()),
            ("RSC_5", vec![Some(true)])
        );
    }

    #[test]
    fn small_payloads_are_left_out() {
        let fall = |payload_kb, factor: f64| {
            [(Level::Regular, 1.0, 1_000.0), (Level::Rsc2, 2.0, 600.0)]
                .map(|(level, k, ns)| Cost { payload_kb, ..cost(level, k, ns * factor) })
        };
        let costs = [fall(64, 1.0), fall(2, 10.0)].concat();
        let faster = Faster::of(&costs).unwrap();
        assert_eq!((faster.payload_kb, faster.y_ns.round() as u64), (64, 800));
    }

    #[test]
    fn costs_that_do_not_fall_say_nothing() {
        let rises = [cost(Level::Regular, 1.0, 500.0), cost(Level::Rsc2, 2.0, 600.0)];
        assert!(Faster::of(&rises).is_none());
        assert!(Faster::of(&[cost(Level::Regular, 1.0, 500.0)]).is_none());
        assert!(Faster::of(&[]).is_none());
    }
}
