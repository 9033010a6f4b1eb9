//! A row for the chosen policy, and one for each point of a sweep.

use std::collections::BTreeSet;

use super::table::Table;
use crate::report::{Distribution, Outcome, Report};

/// All outcomes with their settings. Each setting is a column of text, as the user would type it.
pub(super) fn table(report: &Report) -> Table {
    let outcomes = all(report);
    let count = |value: fn(&Outcome) -> u64| outcomes.iter().map(move |outcome| value(outcome));
    let table = Table::default()
        .count("row", 0..outcomes.len() as u64)
        .flag("is_chosen", (0..outcomes.len()).map(|row| row == 0))
        .text("policy", outcomes.iter().map(|outcome| &outcome.policy))
        .text("poll", outcomes.iter().map(|outcome| &outcome.poll));
    let table = with_settings(table, &outcomes)
        .count("packets", count(|outcome| outcome.packets))
        .count("deliveries", count(|outcome| outcome.deliveries))
        .count("aggregates", count(|outcome| outcome.aggregates))
        .count("aggregated_segments", count(|outcome| outcome.aggregated_segments))
        .count("eliminated", count(|outcome| outcome.eliminated))
        .number(
            "eliminated_per_10_000",
            outcomes.iter().map(|outcome| outcome.eliminated_per_10_000),
        )
        .count("ring_overruns", count(|outcome| outcome.ring_overruns));
    let distributions: [(&str, Of); 5] = [
        ("segments_per_aggregate", |outcome| &outcome.segments_per_aggregate),
        ("payload_per_aggregate_bytes", |outcome| &outcome.bytes_per_aggregate),
        ("hold_ns", |outcome| &outcome.hold_ns),
        ("packets_per_poll", |outcome| &outcome.packets_per_poll),
        ("pause_ns", |outcome| &outcome.pause_ns),
    ];
    distributions.iter().fold(table, |table, (name, of)| {
        let all: Vec<&Distribution> = outcomes.iter().map(|outcome| of(outcome)).collect();
        with_distribution(table, name, &all)
    })
}

/// One of the distributions of an outcome.
type Of = fn(&Outcome) -> &Distribution;

/// The chosen outcome, then those of the sweep in their order.
pub(super) fn all(report: &Report) -> Vec<&Outcome> {
    let swept = report.sweep.iter().flat_map(|sweep| &sweep.outcomes);
    std::iter::once(&report.outcome).chain(swept).collect()
}

/// Adds a column for every setting of any outcome.
fn with_settings(table: Table, outcomes: &[&Outcome]) -> Table {
    let names: BTreeSet<&str> = outcomes
        .iter()
        .flat_map(|outcome| outcome.settings.iter().map(|(name, _)| name.as_str()))
        .collect();
    names.into_iter().fold(table, |table, name| {
        let values = outcomes.iter().map(|outcome| {
            let setting = outcome.settings.iter().find(|(key, _)| key == name);
            setting.map(|(_, value)| value.as_str())
        });
        table.some_text(&format!("set_{name}"), values)
    })
}

fn with_distribution(table: Table, name: &str, all: &[&Distribution]) -> Table {
    table
        .number(&format!("mean_{name}"), all.iter().map(|one| one.mean))
        .count(&format!("p50_{name}"), all.iter().map(|one| one.p50))
        .count(&format!("p99_{name}"), all.iter().map(|one| one.p99))
        .count(&format!("max_{name}"), all.iter().map(|one| one.max))
}
