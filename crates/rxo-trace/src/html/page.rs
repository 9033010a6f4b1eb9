//! The page as a whole.

use std::io;
use std::path::Path;

use askama::Template;
use thiserror::Error;

use super::table::Section;
use super::text::{count, duration, percent, plural, utc};
use super::{advice, aggregates, flows, projection, reasons, sweep, traffic};
use crate::figure::{STYLE, number};
use crate::files;
use crate::report::{Outcome, Report};

/// Why a page could not be made.
#[derive(Debug, Error)]
#[error("cannot make the HTML report: {0}")]
pub struct HtmlError(String);

/// The report as one HTML file.
///
/// # Errors
/// When the template fails, which only a mistake of ours can cause.
pub fn page(report: &Report) -> Result<String, HtmlError> {
    Page::of(report).render().map_err(|error| HtmlError(error.to_string()))
}

/// Writes [`page`] to `path`, whole or not at all.
///
/// # Errors
/// When it cannot be made or written.
pub fn write(report: &Report, path: &Path) -> io::Result<()> {
    let page = page(report).map_err(io::Error::other)?;
    files::replace(path, |file| io::Write::write_all(file, page.as_bytes()))
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: String,
    style: String,
    script: &'static str,
    script_hash: &'static str,
    headline: String,
    lead: String,
    sources: Vec<&'a str>,
    started: Option<String>,
    partial: Option<&'a str>,
    notes: &'a [String],
    tiles: Vec<Tile>,
    sections: Vec<Section>,
    footer: String,
}

/// A figure that is to be seen first.
struct Tile {
    label: &'static str,
    value: String,
    detail: String,
}

impl<'a> Page<'a> {
    fn of(report: &'a Report) -> Self {
        let sources: Vec<&str> =
            report.sources.iter().map(|source| source.name.as_str()).take(MOST_NAMES).collect();
        let started = report.traffic.started_at_ns;
        Self {
            title: format!("What coalescing would do: {}", sources.first().unwrap_or(&"captures")),
            style: format!("{}{STYLE}", include_str!("../../templates/report.css")),
            script: SCRIPT,
            script_hash: SCRIPT_HASH,
            headline: headline(&report.outcome),
            lead: lead(report),
            sources,
            started: (started > 0).then(|| utc(started)),
            partial: report.partial.as_deref(),
            notes: &report.notes,
            tiles: tiles(report),
            sections: sections(report),
            footer: format!(
                "Made by rxo {}, from captured packets and their times. Sizes are decimal; a flow \
                 is one direction of a connection; quantiles are at most 12 % too high.",
                env!("CARGO_PKG_VERSION")
            ),
        }
    }
}

fn sections(report: &Report) -> Vec<Section> {
    let outcome = &report.outcome;
    [
        Some(aggregates::section(outcome)),
        Some(reasons::section(outcome)),
        Some(aggregates::hold_section(outcome)),
        advice::section(report.advice.as_ref()),
        sweep::section(report.sweep.as_ref()),
        projection::section(report.projection.as_ref()),
        flows::section(report),
        Some(traffic::section(report)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn headline(outcome: &Outcome) -> String {
    if outcome.packets == 0 {
        return "There were no packets".to_owned();
    }
    if outcome.eliminated == 0 {
        return "Coalescing would not spare a single packet".to_owned();
    }
    format!("{} fewer packets for the host's stack", percent(saved(outcome)))
}

fn lead(report: &Report) -> String {
    let Outcome { packets, deliveries, policy, poll, .. } = &report.outcome;
    format!(
        "Of {} in {} the stack would have been given {}, under the policy {policy} with \
         --poll {poll}.",
        plural(*packets, "packet"),
        duration(report.traffic.duration_ns as f64),
        plural(*deliveries, "delivery").replace("deliverys", "deliveries"),
    )
}

fn saved(outcome: &Outcome) -> f64 {
    outcome.eliminated as f64 / outcome.packets.max(1) as f64
}

fn tiles(report: &Report) -> Vec<Tile> {
    let Outcome { packets, deliveries, segments_per_aggregate, hold_ns, .. } = &report.outcome;
    let traffic = &report.traffic;
    let tile = |label, value, detail| Tile { label, value, detail };
    vec![
        tile(
            "Eliminated of 10,000",
            number(report.outcome.eliminated_per_10_000.round()),
            format!("{} packets, {} deliveries", count(*packets), count(*deliveries)),
        ),
        tile(
            "Segments per aggregate",
            number(segments_per_aggregate.mean),
            format!(
                "mean; median {}, 99 % at most {}",
                count(segments_per_aggregate.p50),
                count(segments_per_aggregate.p99)
            ),
        ),
        tile(
            "Held, 99 % at most",
            duration(hold_ns.p99 as f64),
            format!(
                "median {}, longest {}",
                duration(hold_ns.p50 as f64),
                duration(hold_ns.max as f64)
            ),
        ),
        tile(
            "Pure ACKs of all packets",
            percent(traffic.pure_acks as f64 / traffic.packets.max(1) as f64),
            format!("{} of them could be aggregated", count(traffic.aggregatable_pure_acks)),
        ),
    ]
}

const SCRIPT: &str = include_str!("../../templates/report.js");
/// Of [`SCRIPT`], so that the browser runs this script and no other. A browser that finds another
/// hash says the right one in its console, and the test with a real browser fails.
const SCRIPT_HASH: &str = "sha256-p6EUCgW8hinuwgCfRIaPLLn2cIgwEP2trsxVX1ty4ro=";
/// More file names than this do not fit under a headline; the table has all.
const MOST_NAMES: usize = 6;
