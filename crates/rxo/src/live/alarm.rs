//! Alarm: the lines that notify the user that an invariant of the run is violated, for example that a frame
//! is not accounted for.
//!
//! This module is separate so that the rate of lines can be tested. The first violation of each kind causes a
//! line. The next line follows only after more violations, and at least [`REST`] later, so that a fault that
//! repeats every second does not fill a disk.

use std::time::Duration;

use crate::worker::{Imbalance, Reading};

/// The number of violations of each invariant since the start of the run.
#[derive(Clone, Debug, Default)]
pub(super) struct Violations {
    unaccounted: u64,
    unsent: u64,
    imbalance: Imbalance,
}

impl Violations {
    pub(super) const fn of(reading: &Reading) -> Self {
        let Reading { unaccounted, unsent, imbalance, .. } = *reading;
        Self { unaccounted, unsent, imbalance }
    }

    /// Returns the number of violations of each kind, and the line that reports this number.
    fn rows(&self) -> [(u64, String); 3] {
        let Self { unaccounted, unsent, imbalance } = self;
        [
            (*unaccounted, unaccounted_line(*unaccounted)),
            (*unsent, unsent_line(*unsent)),
            (imbalance.total(), imbalance_line(imbalance)),
        ]
    }
}

/// Decides when a line about a violated invariant is printed. Stores for each kind of violation the number in
/// the last printed line, and the time of that line.
#[derive(Debug, Default)]
pub(super) struct Alarm([ReportedCount; 3]);

#[derive(Clone, Copy, Debug, Default)]
struct ReportedCount {
    count: u64,
    at: Option<Duration>,
}

impl Alarm {
    /// Returns the lines to print at `now`, given the violations so far.
    pub(super) fn lines(&mut self, now: Duration, of: Violations) -> impl Iterator<Item = String> {
        let rows = self.0.iter_mut().zip(of.rows());
        rows.filter_map(move |(notice, (count, line))| notice.is_due(now, count).then_some(line))
    }

    /// Returns the lines for all violations that were not reported yet, at the end of the run.
    pub(super) fn last(&mut self, of: Violations) -> impl Iterator<Item = String> {
        self.lines(Duration::MAX, of)
    }
}

impl ReportedCount {
    fn is_due(&mut self, now: Duration, count: u64) -> bool {
        let has_rested = self.at.is_none_or(|at| now.saturating_sub(at) >= REST);
        let is_due = count > self.count && has_rested;
        if is_due {
            *self = Self { count, at: Some(now) };
        }
        is_due
    }
}

fn unaccounted_line(frames: u64) -> String {
    format!(
        "{frames} frames arrived at the nic, as the system counts, and neither reached rxo nor were counted as lost; \
         compare `ip -s link` with the totals, where they are `unaccounted`"
    )
}

fn unsent_line(packets: u64) -> String {
    format!(
        "{packets} packets were written to the nic, and the system counts them neither as sent nor as dropped; compare \
         `ip -s link` and `tc -s qdisc` with the totals, where they are `unsent`"
    )
}

fn imbalance_line(of: &Imbalance) -> String {
    let stages = of.named().filter(|(_, frames)| *frames > 0);
    let stages: Vec<_> = stages.map(|(stage, frames)| format!("{stage} {frames}")).collect();
    format!(
        "rxo's own counters do not agree on {} frames ({}): a fault of rxo; report it with the totals, where they are \
         `imbalance`",
        of.total(),
        stages.join(", ")
    )
}

/// The minimum time between two lines about the same kind of violation.
const REST: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(alarm: &mut Alarm, second: u64, unsent: u64, engine: u64) -> Vec<String> {
        let imbalance = Imbalance { engine, ..Imbalance::default() };
        let of = Violations { unsent, imbalance, ..Violations::default() };
        alarm.lines(Duration::from_secs(second), of).collect()
    }

    #[test]
    fn each_kind_is_said_at_once_and_then_seldom() {
        let mut alarm = Alarm::default();
        assert!(lines(&mut alarm, 1, 0, 0).is_empty());
        let first = lines(&mut alarm, 2, 7, 0);
        assert!(
            first.len() == 1 && first[0].starts_with("7 packets were written to the nic"),
            "{first:?}"
        );
        let other = lines(&mut alarm, 3, 9, 2);
        assert!(other.len() == 1 && other[0].contains("on 2 frames (engine 2)"), "{other:?}");
        let notice = (4..=600).map(|second| lines(&mut alarm, second, second * 10, 2).len());
        assert_eq!(notice.sum::<usize>(), 9);
        // Without new violations there is no line, not even at the end.
        assert!(lines(&mut alarm, 700, 5_420, 2).is_empty());
        let of = Violations { unsent: 6_001, ..Violations::default() };
        assert_eq!(alarm.last(of).count(), 1);
    }
}
