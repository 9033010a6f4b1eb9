//! The tables of the settings that were tried, of their reasons and of their histograms.

use std::time::Duration;

use rxo_coalesce::Policy;

use super::Table;
use super::columns::Columns;
use crate::report::{Distribution, Outcome, ReasonCount, Report};
use crate::study::{PollRule, parse_time};

/// A function that selects one of the distributions of an outcome.
type DistributionOf = fn(&Outcome) -> &Distribution;

const DISTRIBUTIONS: [(&str, DistributionOf); 5] = [
    ("segments_per_aggregate", |outcome| &outcome.segments_per_aggregate),
    ("payload_per_aggregate_bytes", |outcome| &outcome.bytes_per_aggregate),
    ("hold_ns", |outcome| &outcome.hold_ns),
    ("packets_per_poll", |outcome| &outcome.packets_per_poll),
    ("pause_ns", |outcome| &outcome.pause_ns),
];

/// Returns all outcomes of the report, beginning with the outcome of the chosen settings.
fn all(report: &Report) -> Vec<&Outcome> {
    if report.tried.is_empty() {
        let swept = report.sweep.iter().flat_map(|sweep| &sweep.outcomes);
        return std::iter::once(&report.outcome).chain(swept).collect();
    }
    report.tried.iter().collect()
}

/// Returns a table with a row for the chosen settings, and a row for every other combination that was tried.
///
/// # Errors
/// The errors of [`flows()`](super::flows()).
pub fn settings(report: &Report) -> Table {
    let outcomes = all(report);
    let count = |value: fn(&Outcome) -> u64| outcomes.iter().map(move |outcome| value(outcome));
    let columns = Columns::default()
        .count("row", 0..outcomes.len() as u64)
        .flag("is_chosen", (0..outcomes.len()).map(|row| row == 0))
        .text("policy", outcomes.iter().map(|outcome| &outcome.policy));
    let columns = with_settings(with_poll(columns, &outcomes), &outcomes)
        .count("packets", count(|outcome| outcome.packets))
        .count("deliveries", count(|outcome| outcome.deliveries))
        .count("aggregates", count(|outcome| outcome.aggregates))
        .count("aggregated_segments", count(|outcome| outcome.aggregated_segments))
        .count("tunnelled", count(|outcome| outcome.tunnelled))
        .count("tunnelled_deliveries", count(|outcome| outcome.tunnelled_deliveries))
        .count("eliminated", count(|outcome| outcome.eliminated))
        .count("eliminated_error", count(|outcome| outcome.eliminated_error))
        .number(
            "eliminated_per_10_000",
            outcomes.iter().map(|outcome| outcome.eliminated_per_10_000),
        )
        .count("ring_overruns", count(|outcome| outcome.ring_overruns));
    let columns = DISTRIBUTIONS.iter().fold(columns, |columns, (name, of)| {
        let number = |value: fn(&Distribution) -> u64| {
            outcomes.iter().map(move |outcome| value(of(outcome)))
        };
        columns
            .number(&format!("mean_{name}"), outcomes.iter().map(|outcome| of(outcome).mean))
            .count(&format!("p50_{name}"), number(|of| of.p50))
            .count(&format!("p99_{name}"), number(|of| of.p99))
            .count(&format!("max_{name}"), number(|of| of.max))
    });
    columns.finish()
}

/// Adds the columns for the poll rule: the rule as the user types it, and the number in the rule, in one column for
/// each kind of rule.
fn with_poll(columns: Columns, outcomes: &[&Outcome]) -> Columns {
    let rules = || outcomes.iter().map(|outcome| outcome.poll.parse::<PollRule>().ok());
    let time = |of: fn(PollRule) -> Option<Duration>| rules().map(move |rule| rule.and_then(of));
    let ns = |time: Option<Duration>| time.map(|time| time.as_nanos() as u64);
    let by_time = time(|rule| if let PollRule::Time(time) = rule { Some(time) } else { None });
    let by_host = time(|rule| if let PollRule::Host(time) = rule { Some(time) } else { None });
    let packets = rules().map(|rule| match rule {
        Some(PollRule::Packets(count)) => Some(count.into()),
        _ => None,
    });
    columns
        .text("poll", outcomes.iter().map(|outcome| &outcome.poll))
        .some_count("poll_time_ns", by_time.map(ns))
        .some_count("poll_host_ns", by_host.map(ns))
        .some_count("poll_packets", packets)
}

/// The type of the column for a setting, to which all values of the setting can be converted.
enum Kind {
    Number,
    Flag,
    Time,
    Text,
}

impl Kind {
    /// Returns the type of the setting at index `place` in the list of settings, from the values of all profiles.
    fn of(place: usize) -> Self {
        let all = Policy::all();
        let values = || all.iter().filter_map(|policy| policy.settings().nth(place)).map(|it| it.1);
        if values().all(|value| number(&value).is_some()) {
            Self::Number
        } else if values().all(|value| flag(&value).is_some()) {
            Self::Flag
        } else if values().all(|value| time_ns(&value).is_some()) {
            Self::Time
        } else {
            Self::Text
        }
    }
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

fn time_ns(text: &str) -> Option<u64> {
    parse_time(text).map(|time| time.as_nanos() as u64)
}

/// Adds a column for every setting that a policy has.
fn with_settings(columns: Columns, outcomes: &[&Outcome]) -> Columns {
    let names = Policy::none().settings().map(|(name, _)| name).collect::<Vec<_>>();
    names.into_iter().enumerate().fold(columns, |columns, (place, name)| {
        let values = outcomes.iter().map(|outcome| {
            let setting = outcome.settings.iter().find(|(key, _)| key == name);
            setting.map(|(_, value)| value.as_str())
        });
        let column = format!("set_{name}");
        match Kind::of(place) {
            Kind::Number => columns.some_count(&column, values.map(|value| value.and_then(number))),
            Kind::Flag => columns.some_flag(&column, values.map(|value| value.and_then(flag))),
            Kind::Time => columns
                .some_count(&format!("{column}_ns"), values.map(|value| value.and_then(time_ns))),
            Kind::Text => columns.some_text(&column, values),
        }
    })
}

/// Returns a table with a row for each reason of each row of [`settings`].
///
/// # Errors
/// The errors of [`flows()`](super::flows()).
pub fn reasons(report: &Report) -> Table {
    let mut rows: Vec<(u64, &str, &ReasonCount)> = Vec::new();
    for (row, outcome) in (0..).zip(all(report)) {
        rows.extend(outcome.bypassed.iter().map(|reason| (row, "bypass", reason)));
        rows.extend(outcome.flushed.iter().map(|reason| (row, "flush", reason)));
    }
    Columns::default()
        .count("settings_row", rows.iter().map(|(row, ..)| *row))
        .text("kind", rows.iter().map(|(_, kind, _)| kind))
        .text("reason", rows.iter().map(|(.., reason)| &reason.reason))
        .count("times", rows.iter().map(|(.., reason)| reason.count))
        .number("share", rows.iter().map(|(.., reason)| reason.share))
        .finish()
}

/// Returns a table with a row for each bucket of each histogram of each row of [`settings`]. Empty buckets are
/// omitted.
///
/// # Errors
/// The errors of [`flows()`](super::flows()).
pub fn histograms(report: &Report) -> Table {
    let mut rows: Vec<(u64, &str, u64, u64)> = Vec::new();
    for (row, outcome) in (0..).zip(all(report)) {
        for (name, of) in DISTRIBUTIONS {
            let buckets = of(outcome).buckets.iter();
            rows.extend(buckets.map(|(most, count)| (row, name, *most, *count)));
        }
    }
    Columns::default()
        .count("settings_row", rows.iter().map(|(row, ..)| *row))
        .text("histogram", rows.iter().map(|(_, name, ..)| name))
        .count("at_most", rows.iter().map(|(.., most, _)| *most))
        .count("times", rows.iter().map(|(.., count)| *count))
        .finish()
}
