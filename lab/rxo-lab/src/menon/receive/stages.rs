//! Maps the stages of rxo's host to the paper's categories. Pure.

use rxo_console::numbers::ratio;
use rxo_host::{Stage, StageTimes};

use super::category::{Breakdown, Category};

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
) -> Option<Breakdown> {
    if times.timed_turns == 0 || packets == 0 {
        return None;
    }
    let turns = ratio(times.turns as f64, times.timed_turns as f64);
    let per_packet = |ns: f64| ns / packets as f64;
    let staged = |stage| per_packet(times.ns(stage) as f64 * turns);
    let worker = per_packet(worker_s * 1e9);
    let all: f64 = Stage::ALL.into_iter().map(staged).sum();
    // Scaling up a sample may give more than the worker's total time.
    let scale = if all > worker { ratio(worker, all) } else { 1.0 };
    let of = |stages: &[Stage]| scale * stages.iter().copied().map(staged).sum::<f64>();
    Some(Breakdown::new(|category| match category {
        Category::Rx => of(&[Stage::Deliver]),
        Category::Tx => of(&[Stage::Serve]),
        // Buffers are released where they are read.
        Category::Buffer => 0.0,
        Category::NonProto => of(&[Stage::Upkeep]),
        Category::DriverIn => of(&[Stage::Receive]),
        Category::DriverOut => of(&[Stage::Expand, Stage::Transmit]),
        Category::Aggr => of(&[Stage::Coalesce]),
        Category::PerByte => per_packet(application_s * 1e9),
        Category::Misc => (worker - all).max(0.0),
    }))
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
    fn what_no_stage_explains_is_misc() {
        let timed = StageTimes { turns: 10, timed_turns: 1, ..StageTimes::default() };
        let breakdown = breakdown(&timed, [2e-6, 1e-6], 10).unwrap();
        assert!((breakdown.of(Category::Misc) - 200.0).abs() < 1e-9);
        assert!((breakdown.of(Category::PerByte) - 100.0).abs() < 1e-9);
        assert!((breakdown.total() - 300.0).abs() < 1e-9);
    }

    #[test]
    fn timed_turns_stand_for_all() {
        let ns = [10, 20, 30, 40, 50, 25, 35];
        let timed = StageTimes { turns: 20, timed_turns: 10, ns };
        let found = breakdown(&timed, [1e-6, 0.0], 10).unwrap();
        // 210 ns in half of the turns are 42 ns for each of 10 packets; the worker took 100.
        let rows = [
            (Category::NonProto, 2.0),
            (Category::DriverIn, 4.0),
            (Category::DriverOut, 12.0),
            (Category::Aggr, 6.0),
            (Category::Rx, 8.0),
            (Category::Tx, 10.0),
            (Category::Misc, 58.0),
        ];
        for (category, ns) in rows {
            assert!((found.of(category) - ns).abs() < 1e-9, "{category:?}: {found:?}");
        }
        let scaled = breakdown(&timed, [0.21e-6, 0.0], 10).unwrap();
        assert!(
            (scaled.total() - 21.0).abs() < 1e-9,
            "never more than the worker took: {scaled:?}"
        );
    }
}
