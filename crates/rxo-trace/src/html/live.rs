//! The page section on a live interface: the host's current settings, and the effect of coalescing at the
//! measured rates.

use super::page::Tile;
use super::table::{Cell, Drawing, Section, Table};
use crate::figure::{Axis, Figure, Series, number};
use crate::report::{Live, LiveRate, LiveReceiver};
use crate::text;
use crate::words::{count, percent};

/// Returns the section; `None` if the report is not of a live interface, or no packets arrived.
pub(super) fn section(live: Option<&Live>) -> Option<Section> {
    let live = live?;
    let all = live.receivers.first().filter(|all| all.packets > 0)?;
    let facts = [
        ("watched", text::watched(live)),
        ("host today", text::today(live)),
        ("packets in a delivery", each(all.packets, all.frames)),
        ("with this report's settings", each(all.packets, all.deliveries)),
    ];
    let facts = facts.map(|(name, value)| vec![Cell::text(name), Cell::text(value)]);
    Some(Section {
        id: "live",
        title: "The host today, and with coalescing",
        text: vec![format!(
            "Compared with the host as it is, at the rates of steps of {}: half of the steps have the median or \
             less, 95 % have p95 or less.",
            text::time(live.step_ns)
        )],
        code: Vec::new(),
        drawings: vec![Drawing::of(&figure(all))],
        tables: vec![
            rates(&live.receivers).shown(""),
            Table::new(&["", ""], facts.into()).shown(""),
        ],
    })
}

/// Returns the tile with the number of cores that receiving takes with the host's current settings, and with
/// the chosen policy; `None` if the report is not of a live interface.
pub(super) fn cores(live: Option<&Live>, range: fn(f64, f64) -> String) -> Option<Tile> {
    let rate = live?.receivers.first()?.rates.first()?;
    Some(Tile {
        label: "Cores busy with receiving",
        value: range(rate.cores_today, rate.cores_with),
        detail: format!("today → with coalescing, at the {} rate", rate.rate),
    })
}

/// Formats the share of packets that the host's current settings eliminate by merging.
pub(super) fn today(live: &Live) -> String {
    let all = live.receivers.first().map_or(0, |all| all.packets);
    percent(1.0 - live.frames.min(all) as f64 / all.max(1) as f64)
}

fn each(packets: u64, deliveries: u64) -> String {
    number(packets as f64 / deliveries.max(1) as f64)
}

fn figure(all: &LiveReceiver) -> Figure {
    let line = |name: &str, cores: fn(&LiveRate) -> f64| {
        Series::over_categories(name, all.rates.iter().map(cores))
    };
    let described = all.rates.iter().map(|rate| {
        let [today, with] = [rate.cores_today, rate.cores_with].map(number);
        format!("{} {today} today and {with} with coalescing", rate.rate)
    });
    let described = described.collect::<Vec<_>>().join(", ");
    Figure::new(
        "Cores busy with receiving, by the rate",
        Axis::categories("rate", all.rates.iter().map(|rate| rate.rate.as_str())),
        Axis::linear("cores busy"),
    )
    .with(line("without coalescing", |rate| rate.cores_without).colour(2))
    .with(line("today", |rate| rate.cores_today).colour(1))
    .with(line("with coalescing", |rate| rate.cores_with).colour(0))
    .describe(format!("Cores at {described}."))
}

fn rates(receivers: &[LiveReceiver]) -> Table {
    let cell = |value: f64| Cell::number(number(value), value);
    let rows = receivers.iter().flat_map(|receiver| {
        receiver.rates.iter().map(move |rate| {
            vec![
                Cell::text(receiver.address.as_deref().unwrap_or("all")),
                Cell::text(&rate.rate),
                Cell::number(count(rate.packets_per_second as u64), rate.packets_per_second),
                cell(rate.gbit_per_second),
                cell(rate.cores_without),
                cell(rate.cores_today),
                cell(rate.cores_with),
                Cell::text(if rate.is_worth_it { "worth it" } else { "not worth it" }),
            ]
        })
    });
    let heads = [
        "receiver",
        "rate",
        "#packets/s",
        "#Gbit/s",
        "#cores without",
        "#today",
        "#with it",
        "decision",
    ];
    Table::new(&heads, rows.collect())
}
