//! Projects the measured cost of packets to other rates.
//!
//! The costs of all levels lie on a line over `1/k`, the deliveries per packet: a packet from the wire costs
//! `x + y/k` (Menon & Zwaenepoel 2008, section 5.2). Coalescing cannot change `x`, and divides `y`. The line
//! is fitted here; `rxo_trace::projection` extrapolates it.

use rxo_console::numbers::rounded;
use rxo_trace::projection::{self, Projection};
use rxo_trace::report;

use super::cost::{Case, Costs, LEVELS, Pace, Sample, is_valid};
use crate::claim::Claim;
use crate::figure::{Figure, Guide, Series};

/// Draws the busy cores by rate, from the costs without a rate limit and with the largest payload; with small
/// payloads waking the receiver for nearly every write dominates the cost. `None` if there are too few costs, or
/// they do not fall with `k`.
pub(super) fn figure(costs: &Costs) -> Option<Figure> {
    let cases = || costs.cases().filter(|it| it.pace == Pace::Unlimited && is_valid(costs, *it));
    let payload_kb = cases().map(|case| case.payload_kb).max()?;
    let cases: Vec<Case> = cases().filter(|case| case.payload_kb == payload_kb).collect();
    let median =
        |value: fn(&Sample) -> f64| cases.iter().filter_map(move |it| costs.median(*it, value));
    let ks = median(|it| it.packets_per_delivery);
    let (x_ns, y_ns) = line_over_inverse(ks.zip(median(|it| it.ns_per_packet)))?;
    if x_ns < 0.0 || y_ns <= 0.0 {
        return None;
    }
    let packet_bytes = mean(median(|it| it.packet_bytes))?;
    // All packets have one size here, so the part that is not divided cannot be split further.
    let fitted =
        projection::Costs { packet_ns: y_ns, device_ns: x_ns, ..projection::Costs::default() };
    let of = |(level, _)| {
        let case = Case { pace: Pace::Unlimited, payload_kb, level };
        let k =
            costs.median(case, |it| it.packets_per_delivery).filter(|_| is_valid(costs, case))?;
        Some((level, project(&fitted, packet_bytes, k)?))
    };
    let levels: Vec<(&str, Projection)> = LEVELS.into_iter().filter_map(of).collect();
    let line = |(level, projection): &(&'static str, Projection)| {
        let cores = projection.points.iter().map(|point| Some(point.cores_with));
        Series::new(*level, cores.collect())
    };
    let (_, first) = levels.first()?;
    let five = levels.iter().find(|(level, _)| *level == "RSC_5");
    let (x_ns, y_ns) = (rounded(x_ns, 1), rounded(y_ns, 1));
    let detail = format!("A packet costs {x_ns} ns + {y_ns} ns / k, in writes of {payload_kb} KB.");
    let saved = five.map(|(_, projection)| 100.0 * projection.saved);
    Some(Figure {
        number: "projection",
        x: first.points.iter().map(|point| point.rate_gbit_per_s.to_string()).collect(),
        series: levels.iter().map(line).collect(),
        guides: vec![Guide { value: 1.0, meaning: "one core" }],
        claims: vec![Claim::new("rsc.projection", saved, detail)],
        ..Figure::default()
    })
}

/// Applies the model to packets of `packet_bytes`, with `k` of them per delivery.
fn project(costs: &projection::Costs, packet_bytes: f64, k: f64) -> Option<Projection> {
    // The projection takes whole numbers; a million packets make the rounding error negligible.
    let packets = 1_000_000_u64;
    let scaled = |value: f64| (value * packets as f64).round() as u64;
    let traffic =
        report::Traffic { packets, bytes: scaled(packet_bytes), ..report::Traffic::default() };
    let deliveries = scaled(1.0 / k.max(1.0));
    let outcome = report::Outcome { packets, deliveries, ..report::Outcome::default() };
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

    fn costs(all: &[(usize, &'static str, f64, f64)]) -> Costs {
        let cell = |&(payload_kb, level, packets_per_delivery, ns_per_packet): &(_, _, _, _)| {
            let sample = Sample {
                ns_per_byte: 1.0,
                ns_per_packet,
                core_percent: 100.0,
                gbit_per_s: 5.0,
                packets_per_delivery,
                packet_bytes: 1_500.0,
            };
            (Case { pace: Pace::Unlimited, payload_kb, level }, vec![sample])
        };
        Costs::of(all.iter().map(cell).collect())
    }

    /// On the line 200 + 800/k a packet of 12,000 bits takes a microsecond with k = 1. Costs with small payloads are
    /// left out.
    #[test]
    fn costs_on_a_line_are_projected() {
        let all = [
            (64, "Regular", 1.0, 1_000.0),
            (64, "RSC_2", 2.0, 600.0),
            (64, "RSC_5", 4.0, 400.0),
            (2, "Regular", 1.0, 10_000.0),
            (2, "RSC_2", 2.0, 1_000.0),
        ];
        let figure = figure(&costs(&all)).unwrap();
        let at = |series: usize, rate: &str| {
            figure.series[series].values[figure.x.iter().position(|x| x == rate).unwrap()].unwrap()
        };
        assert_eq!(
            (figure.series[2].name.as_str(), figure.verdicts()),
            ("RSC_5", vec![Some(true)])
        );
        assert!((at(0, "100") - 100.0 / 12.0).abs() < 0.01, "{figure:?}");
        assert!((at(2, "100") / at(0, "100") - 0.4).abs() < 0.01, "{figure:?}");
        let line = figure.claims[0].line();
        assert!(line.contains("200 ns + 800 ns / k, in writes of 64 KB."), "{line}");
    }

    #[test]
    fn costs_that_do_not_fall_say_nothing() {
        assert!(figure(&costs(&[(8, "Regular", 1.0, 500.0), (8, "RSC_2", 2.0, 600.0)])).is_none());
        assert!(figure(&costs(&[(8, "Regular", 1.0, 500.0)])).is_none());
        assert!(figure(&costs(&[])).is_none());
    }
}
