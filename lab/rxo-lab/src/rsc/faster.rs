//! Projects the measured cost of packets to other rates.
//!
//! The costs of all levels lie on a line over `1/k`, the deliveries per packet: a packet from the wire costs
//! `x + y/k` ([`Fit`]). Coalescing cannot change `x`, and divides `y`. `rxo_trace::projection` extrapolates the line.

use rxo_console::numbers::rounded;
use rxo_trace::projection::{self, Projection};
use rxo_trace::report;
use serde_json::{Value, json};

use super::cost::{LEVELS, median};
use crate::fit::Fit;
use crate::study::Rows;

/// Adds the busy cores by level and rate, and the fitted line. The rows are empty if there are too few costs, or they do
/// not fall with `k`.
pub(super) fn add(rows: &mut Rows) {
    let (fit, cores) = projected(&rows["costs"]).unwrap_or_default();
    rows.insert("fit".to_owned(), fit);
    rows.insert("projection".to_owned(), cores.into());
}

/// Projects the valid costs without a rate limit and with the largest payload; with small payloads waking the receiver
/// for nearly every write dominates the cost.
fn projected(costs: &Value) -> Option<(Value, Vec<Value>)> {
    let costs = costs.as_array()?;
    let is_wanted = |it: &&Value| it["pace"] == "unlimited" && it["is_valid"] == true;
    let payload_kb =
        costs.iter().filter(is_wanted).filter_map(|it| it["payload_kb"].as_u64()).max()?;
    let of_level = |(level, _): (&'static str, _)| {
        let is_of = |it: &&Value| it["payload_kb"] == payload_kb && it["level"] == level;
        Some((level, costs.iter().filter(is_wanted).find(is_of)?))
    };
    let cases: Vec<(&str, &Value)> = LEVELS.into_iter().filter_map(of_level).collect();
    let medians =
        |field: &'static str| cases.iter().filter_map(move |(_, it)| median(costs, it, field));
    let points = medians("packets_per_delivery").zip(medians("ns_per_packet"));
    let points: Vec<_> = points.filter(|(k, _)| *k > 0.0).collect();
    let Fit { x: x_ns, y: y_ns, .. } = Fit::of(&points, 2)?;
    if x_ns < 0.0 || y_ns <= 0.0 {
        return None;
    }
    let packet_bytes = medians("packet_bytes").sum::<f64>() / cases.len() as f64;
    // All packets have one size here, so the part that is not divided cannot be split further.
    let fitted =
        projection::Costs { packet_ns: y_ns, device_ns: x_ns, ..projection::Costs::default() };
    let (mut fit, mut cores) = (json!({ "payload_kb": payload_kb }), Vec::new());
    (fit["x_ns"], fit["y_ns"]) = (rounded(x_ns, 1).into(), rounded(y_ns, 1).into());
    for (level, case) in &cases {
        let k = median(costs, case, "packets_per_delivery")?;
        let Projection { points, saved, .. } = project(&fitted, packet_bytes, k)?;
        if *level == "RSC_5" {
            fit["saved_percent"] = (100.0 * saved).into();
        }
        cores.extend(points.iter().map(|point| {
            json!({ "level": level, "gbit_per_s": point.rate_gbit_per_s, "cores": point.cores_with })
        }));
    }
    Some((fit, cores))
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
