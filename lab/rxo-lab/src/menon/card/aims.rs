//! The project's aims for a host behind a card, with verdicts from the rows.

use super::case::Case;
use super::row::Rows;
use crate::menon::receive::fit::Fit;
use crate::menon::receive::stack::Stack;
use crate::menon::verdict::Verdict;

/// Returns a verdict for each aim that the rows can decide.
pub(super) fn all(rows: Rows<'_>) -> Vec<Verdict> {
    let one = Case::one_processor(Stack::OPTIMIZED);
    let of = |claim, times, least| aim(claim, Some(times), least);
    let mut aims = Vec::new();
    aims.extend(rows.gain(one).map(|gain| {
        of(
            "with one processor both optimizations, expansion included, receive at least 100 % more for an instruction",
            gain.instructions,
            2.0,
        )
    }));
    // The saturated case corresponds to the paper, whose senders saturate the receiver.
    aims.extend(rows.gain(one.saturated()).or(rows.gain(one)).map(|gain| {
        of(
            "with one processor both optimizations receive at least 45 % more for a second of processor time",
            gain.time,
            1.45,
        )
    }));
    let over_single = rows.gain_over(one, Case::SINGLE);
    aims.extend(over_single.map(|gain| {
        let found = format!(
            "{:+.0} % for an instruction, {:+.0} % for a second.",
            percent(gain.instructions),
            percent(gain.time)
        );
        let claim = "over Original with polls of one frame, as a kernel of 2006 took them, both gain at least \
                     100 % for an instruction";
        Verdict::new(claim, Some(gain.instructions >= 2.0), found)
    }));
    let formula = rows.limits();
    let points: Vec<_> =
        formula.iter().map(|(limit, row)| (*limit, row.per_packet.median)).collect();
    aims.extend(Fit::of(&points).map(|fit| {
        let found = format!(
            "x = {:.0}, y = {:.0} instructions per packet; the curve explains {:.0} % of the spread.",
            fit.x,
            fit.y,
            100.0 * fit.r_squared
        );
        let claim = "the cost of a packet follows x + y/k over the Aggregation Limit k (figure 11)";
        Verdict::new(claim, Some(fit.r_squared >= 0.9), found)
    }));
    aims
}

pub(super) fn aim(claim: &str, times: Option<f64>, least: f64) -> Verdict {
    let found = times
        .map_or("Not both were measured.".to_owned(), |times| format!("{:+.0} %.", percent(times)));
    Verdict::new(claim, times.map(|times| times >= least), found)
}

fn percent(times: f64) -> f64 {
    100.0 * (times - 1.0)
}

/// Phrase that occurs in each claim about time.
pub(super) const OF_TIME: &str = "second of processor time";
