//! The project's aims for a host behind a card.

use super::case::Case;
use super::row::Rows;
use crate::claim::Claim;
use crate::menon::receive::stack::Stack;

/// Returns a claim for each aim that the rows can decide.
pub(super) fn all(rows: Rows<'_>) -> Vec<Claim> {
    let one = Case::one_processor(Stack::OPTIMIZED);
    let instructions = rows.gain(one).map(|gain| gain.instructions);
    // The saturated case corresponds to the paper, whose senders saturate the receiver.
    let time = rows.gain(one.saturated()).or(rows.gain(one)).map(|gain| gain.time);
    let over_single = rows.gain_over(one, Case::SINGLE);
    let in_time = over_single.map(|gain| format!("{:+.0} % for a second.", percent(gain.time)));
    vec![
        Claim::new("menon-card.aim.instructions", instructions.map(percent), None),
        Claim::new("menon-card.aim.time", time.map(percent), None),
        Claim::new(
            "menon-card.aim.over-single",
            over_single.map(|gain| percent(gain.instructions)),
            in_time,
        ),
    ]
}

pub(super) fn percent(times: f64) -> f64 {
    100.0 * (times - 1.0)
}
