//! Combines all measurements of one path into a row of the table.

use rxo_console::numbers::rounded;
use serde::Serialize;

use super::path::Path;
use super::sample::{CpuParts, Sample};
use crate::losses::Losses;
use crate::stats::Spread;

/// The figures of one path: medians with their spreads.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) path: Path,
    pub(crate) connections: usize,
    pub(crate) gbit_per_s: f64,
    pub(crate) cpu_s_per_gb: f64,
    pub(crate) deliveries_per_1000_packets: f64,
    pub(crate) segments_per_aggregate: f64,
    /// Median time for which aggregates were held, in microseconds; `None` on the kernel's own paths, which do not
    /// report hold times.
    pub(crate) hold_p50_us: Option<f64>,
    pub(crate) hold_p99_us: Option<f64>,
    pub(crate) rr_per_s: f64,
    pub(crate) rr_p50_us: f64,
    /// Lost and retransmitted packets of all rounds together.
    #[serde(flatten)]
    pub(crate) losses: Losses,
    /// `true` if every byte of every round arrived as it was sent.
    pub(crate) hash_ok: bool,
    pub(crate) cpu_parts_s_per_gb: CpuParts,
    pub(crate) rounds: usize,
    pub(crate) spreads: Spreads,
}

/// For each median of a row, the smallest and the largest value of a round.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Spreads {
    pub(crate) gbit_per_s: Spread,
    pub(crate) cpu_s_per_gb: Spread,
    pub(crate) segments_per_aggregate: Spread,
    pub(crate) rr_per_s: Spread,
    pub(crate) rr_p50_us: Spread,
}

impl Row {
    /// Combines the `samples` of `path` into a row of medians; `None` if there are no samples.
    pub(crate) fn of(path: Path, connections: usize, samples: &[Sample]) -> Option<Self> {
        let spread =
            |value: fn(&Sample) -> f64| Some(Spread::over(samples, value)?.rounded(DECIMALS));
        let hold = |value: fn(&Sample) -> Option<f64>| {
            Spread::of(samples.iter().filter_map(value)).map(|spread| rounded(spread.median, 1))
        };
        let spreads = Spreads {
            gbit_per_s: spread(|sample| sample.gbit_per_s)?,
            cpu_s_per_gb: spread(|sample| sample.cpu_s_per_gb)?,
            segments_per_aggregate: spread(|sample| sample.segments_per_aggregate)?,
            rr_per_s: spread(|sample| sample.rr_per_s)?,
            rr_p50_us: spread(|sample| sample.rr_p50_us)?,
        };
        Some(Self {
            path,
            connections,
            gbit_per_s: spreads.gbit_per_s.median,
            cpu_s_per_gb: spreads.cpu_s_per_gb.median,
            deliveries_per_1000_packets: spread(|s| s.deliveries_per_1000_packets)?.median,
            segments_per_aggregate: spreads.segments_per_aggregate.median,
            hold_p50_us: hold(|sample| sample.hold_us.map(|hold| hold.p50)),
            hold_p99_us: hold(|sample| sample.hold_us.map(|hold| hold.p99)),
            rr_per_s: spreads.rr_per_s.median,
            rr_p50_us: spreads.rr_p50_us.median,
            cpu_parts_s_per_gb: cpu_parts(samples),
            losses: samples.iter().map(|sample| sample.losses).sum(),
            hash_ok: samples.iter().all(|sample| sample.hash_ok),
            rounds: samples.len(),
            spreads,
        })
    }
}

/// Returns the median of each part of the processor time separately. Their sum may differ from the median of the total.
fn cpu_parts(samples: &[Sample]) -> CpuParts {
    let median = |part: fn(&CpuParts) -> f64| {
        let spread = Spread::over(samples, |sample| part(&sample.cpu_parts));
        spread.map_or(0.0, |spread| rounded(spread.median, DECIMALS))
    };
    CpuParts {
        sender: median(|parts| parts.sender),
        receiver: median(|parts| parts.receiver),
        rest: median(|parts| parts.rest),
        ksoftirqd: median(|parts| parts.ksoftirqd),
    }
}

/// Number of decimal places of the figures; more decimals would exceed the precision of the measurement.
const DECIMALS: i32 = 3;

#[cfg(test)]
mod tests {
    use super::super::sample::HoldTime;
    use super::*;
    use crate::losses;

    fn sample(gbit_per_s: f64) -> Sample {
        Sample {
            gbit_per_s,
            cpu_s_per_gb: 1.0,
            deliveries_per_1000_packets: 40.0,
            segments_per_aggregate: 25.0,
            hold_us: None,
            rr_per_s: 12_000.0,
            rr_p50_us: 80.0,
            cpu_parts: CpuParts { sender: gbit_per_s / 10.0, ..CpuParts::default() },
            losses: losses::tests::SOME,
            hash_ok: true,
        }
    }

    #[test]
    fn figures_are_medians_and_losses_are_sums() {
        let row = Row::of(Path::Rxo, 16, &[sample(9.0), sample(12.0), sample(11.0)]).unwrap();
        assert!((row.gbit_per_s - 11.0).abs() < 1e-9);
        assert_eq!(row.spreads.gbit_per_s, Spread { median: 11.0, min: 9.0, max: 12.0 });
        assert_eq!((row.losses.retransmissions, row.losses.lost(), row.rounds), (3, 333, 3));
        assert!((row.cpu_parts_s_per_gb.sender - 1.1).abs() < 1e-9);
        assert!(row.hash_ok && row.hold_p50_us.is_none());
    }

    #[test]
    fn one_wrong_byte_in_one_round_is_told() {
        let wrong = Sample { hash_ok: false, ..sample(9.0) };
        assert!(!Row::of(Path::Rxo, 1, &[sample(9.0), wrong]).unwrap().hash_ok);
    }

    #[test]
    fn hold_times_are_of_the_rounds_that_have_one() {
        let held = Sample { hold_us: Some(HoldTime { p50: 3.0, p99: 30.0 }), ..sample(9.0) };
        let row = Row::of(Path::Rxo, 1, &[held, sample(9.0)]).unwrap();
        assert_eq!((row.hold_p50_us, row.hold_p99_us), (Some(3.0), Some(30.0)));
    }

    #[test]
    fn a_path_never_measured_has_no_row() {
        assert!(Row::of(Path::None, 1, &[]).is_none());
    }
}
