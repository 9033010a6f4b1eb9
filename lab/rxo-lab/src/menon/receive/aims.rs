//! The project's aims for its host, decided by the rows.

use rxo_console::numbers::ratio;

use super::row::Rows;
use super::stack::Stack;
use crate::claim::Claim;

/// Returns the claim of every aim.
pub(super) fn all(rows: Rows<'_>) -> Vec<Claim> {
    let gain = |connections| rows.gain(connections, Stack::OPTIMIZED);
    vec![
        Claim::new("menon.aim.one", gain(1), None),
        Claim::new("menon.aim.many", gain(400), None),
        Claim::new("menon.aim.limit-of-one", limit_of_one(rows).map(f64::abs), None),
        Claim::new("menon.aim.requests", requests(rows).map(f64::abs), None),
    ]
}

/// Returns the gain of an Aggregation Limit of one over Original, in percent.
fn limit_of_one(rows: Rows<'_>) -> Option<f64> {
    Some(100.0 * (rows.gain(1, Stack::limited(1))? - 1.0))
}

fn requests(rows: Rows<'_>) -> Option<f64> {
    let of = |stack| Some(rows.exchange(stack)?.per_s.median);
    Some(100.0 * (ratio(of(Stack::OPTIMIZED)?, of(Stack::ORIGINAL)?) - 1.0))
}

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
        all(rows).iter().map(Claim::holds).collect()
    }

    #[test]
    fn aims_are_met_or_not_by_the_rows_alone() {
        assert_eq!(holds(500.0, 1_020.0), [Some(true), Some(true), Some(true), None]);
        assert_eq!(holds(600.0, 1_050.0), [Some(false), Some(true), Some(false), None]);
    }
}
