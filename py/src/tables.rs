//! The tables of a report, with the columns of the Parquet files.

use std::collections::BTreeSet;

use pyo3::prelude::*;
use rxo_trace::report::{Distribution, FlowReport, Outcome, Report};

use crate::table::{Columns, Table};

/// A row for each flow, in the report's order.
pub(crate) fn flows(report: &Report) -> PyResult<Table> {
    let flows = &report.flows;
    let count = |value: fn(&FlowReport) -> u64| flows.iter().map(value);
    let started_at_ns = report.traffic.started_at_ns;
    let instant = |value: fn(&FlowReport) -> u64| {
        flows.iter().map(move |flow| started_at_ns.saturating_add(value(flow)))
    };
    Columns::default()
        .text("source", flows.iter().map(|flow| &flow.source))
        .text("destination", flows.iter().map(|flow| &flow.destination))
        .some_small("vlan", flows.iter().map(|flow| flow.vlan))
        .count("packets", count(|flow| flow.packets))
        .count("wire_bytes", count(|flow| flow.bytes))
        .count("payload_bytes", count(|flow| flow.payload_bytes))
        .count("data_segments", count(|flow| flow.data_segments))
        .count("pure_acks", count(|flow| flow.pure_acks))
        .count("deliveries", count(|flow| flow.deliveries))
        .count("aggregates", count(|flow| flow.aggregates))
        .count("aggregated_segments", count(|flow| flow.aggregated_segments))
        .count("first_ns", count(|flow| flow.first_ns))
        .count("last_ns", count(|flow| flow.last_ns))
        .instant("first_at", instant(|flow| flow.first_ns))
        .instant("last_at", instant(|flow| flow.last_ns))
        .finish()
}

/// A row for the chosen settings, and one for each of the sweep.
pub(crate) fn settings(report: &Report) -> PyResult<Table> {
    let swept = report.sweep.iter().flat_map(|sweep| &sweep.outcomes);
    let outcomes: Vec<&Outcome> = std::iter::once(&report.outcome).chain(swept).collect();
    let count = |value: fn(&Outcome) -> u64| outcomes.iter().map(move |outcome| value(outcome));
    let columns = Columns::default()
        .count("row", 0..outcomes.len() as u64)
        .flag("is_chosen", (0..outcomes.len()).map(|row| row == 0))
        .text("policy", outcomes.iter().map(|outcome| &outcome.policy))
        .text("poll", outcomes.iter().map(|outcome| &outcome.poll));
    let columns = with_settings(columns, &outcomes)
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
    let all = distributions.iter().fold(columns, |columns, (name, of)| {
        let number = |value: fn(&Distribution) -> u64| {
            outcomes.iter().map(move |outcome| value(of(outcome)))
        };
        columns
            .number(&format!("mean_{name}"), outcomes.iter().map(|outcome| of(outcome).mean))
            .count(&format!("p50_{name}"), number(|of| of.p50))
            .count(&format!("p99_{name}"), number(|of| of.p99))
            .count(&format!("max_{name}"), number(|of| of.max))
    });
    all.finish()
}

/// One of the distributions of an outcome.
type Of = fn(&Outcome) -> &Distribution;

/// Adds a column for every setting of any outcome.
fn with_settings(columns: Columns, outcomes: &[&Outcome]) -> Columns {
    let settings = |outcome: &&Outcome| outcome.settings.clone();
    let names: BTreeSet<String> =
        outcomes.iter().flat_map(settings).map(|(name, _)| name).collect();
    names.into_iter().fold(columns, |columns, name| {
        let values = outcomes.iter().map(|outcome| {
            let setting = outcome.settings.iter().find(|(key, _)| *key == name);
            setting.map(|(_, value)| value.as_str())
        });
        columns.some_text(&format!("set_{name}"), values)
    })
}
