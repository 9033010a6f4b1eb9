//! Maps the stages of rxo's host to the paper's categories (section 2.2; `aggr` from figure 8 on). Pure.
//!
//! rx is the lookup and processing of received segments, tx that of sent ones; buffers are released where they
//! are read. non-proto is per-packet work that is neither protocol nor device. The paper's driver is driver in and
//! driver out: sent frames, and the expansion of templates, as in the paper's driver. per-byte is the
//! application, misc the worker's time outside the timed stages.

use rxo_console::numbers::ratio;
use rxo_host::{Stage, StageTimes};

use crate::counted::Costs;

const STAGES: [(&str, &[Stage]); 7] = [
    ("rx", &[Stage::Deliver]),
    ("tx", &[Stage::Serve]),
    ("buffer", &[]),
    ("non-proto", &[Stage::Upkeep]),
    ("driver in", &[Stage::Receive]),
    ("driver out", &[Stage::Expand, Stage::Transmit]),
    ("aggr", &[Stage::Coalesce]),
];

/// Computes the time of each category per packet, in nanoseconds, from the stage times between two readings
/// and the processor times of worker and applications in seconds. Returns `None` if no turn was timed or no
/// packet arrived.
///
/// Timed turns are a sample: their times are scaled by the ratio of all turns to timed turns. The rest of the
/// worker's time is misc.
pub(super) fn breakdown(
    times: &StageTimes,
    [worker_s, application_s]: [f64; 2],
    packets: u64,
) -> Option<Costs> {
    if times.timed_turns == 0 || packets == 0 {
        return None;
    }
    let turns = ratio(times.turns as f64, times.timed_turns as f64);
    let per_packet = |ns: f64| ns / packets as f64;
    let staged = |stage: &Stage| per_packet(times.ns(*stage) as f64 * turns);
    let worker = per_packet(worker_s * 1e9);
    let all: f64 = Stage::ALL.iter().map(staged).sum();
    // Scaling up a sample may give more than the worker's total time.
    let scale = if all > worker { ratio(worker, all) } else { 1.0 };
    let of = |stages: &[Stage]| scale * stages.iter().map(staged).sum::<f64>();
    let others = [("per-byte", per_packet(application_s * 1e9)), ("misc", (worker - all).max(0.0))];
    Some(STAGES.into_iter().map(|(name, stages)| (name, of(stages))).chain(others).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_timed_is_nothing_known() {
        let timed = StageTimes { turns: 10, timed_turns: 1, ..StageTimes::default() };
        assert!(breakdown(&StageTimes::default(), [1.0, 1.0], 1).is_none());
        assert!(breakdown(&timed, [1.0, 1.0], 0).is_none());
    }

    #[test]
    fn timed_turns_stand_for_all_and_what_no_stage_explains_is_misc() {
        let ns = [10, 20, 30, 40, 50, 25, 35];
        let timed = StageTimes { turns: 20, timed_turns: 10, ns };
        let found = breakdown(&timed, [1e-6, 1e-6], 10).unwrap();
        // 210 ns in half of the turns are 42 ns for each of 10 packets; the worker took 100.
        let rows = [
            ("non-proto", 2.0),
            ("driver in", 4.0),
            ("driver out", 12.0),
            ("aggr", 6.0),
            ("rx", 8.0),
            ("tx", 10.0),
            ("misc", 58.0),
            ("per-byte", 100.0),
        ];
        for (category, ns) in rows {
            assert!((found.of(category) - ns).abs() < 1e-9, "{category}: {found:?}");
        }
        let scaled = breakdown(&timed, [0.21e-6, 0.0], 10).unwrap().total();
        assert!((scaled - 21.0).abs() < 1e-9, "never more than the worker took: {scaled}");
    }
}
