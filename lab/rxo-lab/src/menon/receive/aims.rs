//! The project's aims for its host, with verdicts from the rows.

use rxo_console::numbers::ratio;
use rxo_demo::wrap::count;

use super::row::Rows;
use super::stack::Stack;
use crate::menon::verdict::Verdict;

/// Returns the verdict on every aim.
pub(super) fn all(rows: Rows<'_>) -> Vec<Verdict> {
    vec![
        gain(rows, 1, 1.9),
        gain(rows, 400, 1.4),
        alike("an Aggregation Limit of one is within 3 % of Original", limit_of_one(rows), 3.0),
        alike("requests and responses are within 2 % of Original", requests(rows), 2.0),
    ]
}

fn gain(rows: Rows<'_>, connections: usize, least: f64) -> Verdict {
    let claim = format!(
        "with {} both optimizations receive at least {least} times as much \
         as Original in the same processor time",
        count(connections, "connection")
    );
    let times = rows.gain(connections, Stack::OPTIMIZED);
    let found = times.map_or(NOT_MEASURED.to_owned(), |times| format!("{times:.2} times."));
    Verdict::new(claim, times.map(|times| times >= least), found)
}

fn alike(claim: &str, change_percent: Option<f64>, most: f64) -> Verdict {
    let found = change_percent.map_or(NOT_MEASURED.to_owned(), |change| format!("{change:+.1} %."));
    let holds = change_percent.map(|change| change.abs() <= most);
    Verdict::new(claim, holds, found)
}

/// Returns the gain of an Aggregation Limit of one over Original, in percent.
fn limit_of_one(rows: Rows<'_>) -> Option<f64> {
    Some(100.0 * (rows.gain(1, Stack::limited(1))? - 1.0))
}

fn requests(rows: Rows<'_>) -> Option<f64> {
    let of = |stack| Some(rows.exchange(stack)?.per_s.median);
    Some(100.0 * (ratio(of(Stack::OPTIMIZED)?, of(Stack::ORIGINAL)?) - 1.0))
}

const NOT_MEASURED: &str = "Not both were measured.";

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    fn holds(optimized_ns: f64, limit_of_one_ns: f64) -> Vec<Option<bool>> {
        let bulk = [
            row(1, Stack::ORIGINAL, 1_000.0),
            row(1, Stack::OPTIMIZED, optimized_ns),
            row(1, Stack::limited(1), limit_of_one_ns),
            row(400, Stack::ORIGINAL, 1_000.0),
            row(400, Stack::OPTIMIZED, 700.0),
        ];
        let rows = Rows { bulk: &bulk, exchange: &[] };
        all(rows).into_iter().map(|verdict| verdict.holds).collect()
    }

    #[test]
    fn aims_are_met_or_not_by_the_rows_alone() {
        assert_eq!(holds(500.0, 1_020.0), [Some(true), Some(true), Some(true), None]);
        assert_eq!(holds(600.0, 1_050.0), [Some(false), Some(true), Some(false), None]);
    }
}
