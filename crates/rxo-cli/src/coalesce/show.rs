//! The summary of `rxo coalesce` as text.

use rxo_trace::rewrite::Coalesced;

use super::plan::Plan;
use crate::numbers::{grouped, ratio};

/// Returns the summary of `rxo coalesce` as text: packets, aggregates and the size of the notes.
pub(super) fn text(plan: &Plan, output: &str, figures: &Coalesced) -> String {
    let point = &plan.settings.point;
    let per_aggregate = ratio(figures.aggregated_packets as f64, figures.aggregates as f64);
    let share = ratio(figures.remembered_bytes as f64, figures.captured_bytes as f64) * 100.0;
    let mut text = format!(
        "{output}: {} packets became {} with {} and a poll of {}: {} aggregates of {per_aggregate:.1} \
         packets on average. What they cannot say takes {} bytes ({share:.2} % of the capture).",
        grouped(figures.packets),
        grouped(figures.deliveries),
        point.policy.name,
        point.poll,
        grouped(figures.aggregates),
        grouped(figures.remembered_bytes),
    );
    if figures.single_acks > 0 {
        text += &format!(
            "\n{} pure ACKs that {} aggregates are written one by one: a capture keeps every \
             acknowledgement. rxo analyze counts what aggregating them saves.",
            grouped(figures.single_acks),
            point.policy.name,
        );
    }
    if figures.early_flushes > 0 {
        text += &format!(
            "\n{} times everything held was delivered early, because a packet had waited for more \
             than is kept in order.",
            grouped(figures.early_flushes)
        );
    }
    if figures.unserved_packets > 0 {
        text += &format!(
            "\n{} packets passed as they are: the capture has more interfaces than there are \
             engines for.",
            grouped(figures.unserved_packets)
        );
    }
    text
}
