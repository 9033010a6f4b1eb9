//! The page section on the reasons for bypasses and flushes, and what each reason means.

use super::table::{Cell, Drawing, Part, Section, Table};
use crate::figure::{Bar, Ranking};
use crate::report::{Outcome, ReasonCount};
use crate::words::{count, percent};

/// Returns the section on two kinds of reasons: those that prevented coalescing, and those that ended aggregates.
pub(super) fn section(outcome: &Outcome) -> Section {
    let mut section = Section {
        id: "reasons",
        title: "What stopped coalescing",
        text: vec![
            "A packet that may never be coalesced bypasses the engine; everything else is held, \
             alone or with others, until something flushes it. A flush at the end of a poll or at \
             a limit is what the settings asked for; the other reasons are in the traffic."
                .to_owned(),
        ],
        code: Vec::new(),
        drawings: Vec::new(),
        tables: Vec::new(),
    };
    let parts = [
        ("What ended aggregates and lone candidates", &outcome.flushed, 0),
        ("What was no candidate", &outcome.bypassed, 1),
    ];
    for (title, reasons, colour) in parts {
        if reasons.is_empty() {
            section.text.push(format!("{title}: nothing."));
            continue;
        }
        section.drawings.push(Drawing::of(&ranking(title, reasons, colour)));
        section.tables.push(table(title, reasons));
    }
    section
}

/// Returns the figure of the most frequent reasons. The table contains all reasons.
fn ranking(title: &str, reasons: &[ReasonCount], colour: usize) -> Ranking {
    let bars = reasons.iter().take(MOST_BARS).map(|reason| Bar {
        name: reason.reason.replace('_', " "),
        value: reason.count as f64,
        text: format!("{} ({})", count(reason.count), percent(reason.share)),
        colour,
    });
    let first = &reasons[0];
    Ranking {
        title: title.to_owned(),
        description: format!(
            "The most frequent reason is {} with {}, {}.",
            first.reason.replace('_', " "),
            count(first.count),
            percent(first.share)
        ),
        bars: bars.collect(),
    }
}

fn table(title: &str, reasons: &[ReasonCount]) -> Part {
    let rows = reasons.iter().map(|reason| {
        vec![
            Cell::text(&reason.reason),
            Cell::number(count(reason.count), reason.count as f64),
            Cell::number(percent(reason.share), reason.share),
            Cell::text(&reason.meaning),
            Cell::text(reason.remedy.as_deref().unwrap_or("-")),
        ]
    });
    Table::new(
        &["reason", "#times", "#share", "what it means", "what would change it"],
        rows.collect(),
    )
    .behind(format!("{title} as a table, with what each reason means and what would change it"))
}

const MOST_BARS: usize = 10;
