//! The reasons for flushes and for bypasses, as text.

use rxo_console::numbers::grouped;
use rxo_console::table::Table;

use crate::report::{Outcome, ReasonCount};

/// The minimum share of a reason whose meaning is listed, from 0 to 1. Rarer reasons are listed only by name,
/// which keeps the table readable.
const MAIN_SHARE: f64 = 0.01;

pub(super) fn text(outcome: &Outcome) -> Vec<String> {
    [
        ("What ended what was held (deliveries)", &outcome.flushed),
        ("What was not a candidate (packets)", &outcome.bypassed),
    ]
    .into_iter()
    .filter(|(_, reasons)| !reasons.is_empty())
    .map(|(title, reasons)| format!("{title}\n\n{}", table(reasons)))
    .collect()
}

fn table(reasons: &[ReasonCount]) -> String {
    let mut table =
        Table::new(&["reason", "count", "share", "what it means; what would change it"]);
    for reason in reasons {
        let description = if reason.share < MAIN_SHARE { String::new() } else { describe(reason) };
        table.row([
            reason.reason.clone(),
            grouped(reason.count),
            format!("{:.1} %", 100.0 * reason.share),
            description,
        ]);
    }
    table.render()
}

fn describe(reason: &ReasonCount) -> String {
    match &reason.remedy {
        Some(remedy) => format!("{}; {remedy}", reason.meaning),
        None => reason.meaning.clone(),
    }
}
