//! The HTML page of a report: fills the template with all sections.

use std::io;
use std::path::Path;

use askama::Template;
use rxo_console::files;
use thiserror::Error;

use super::prose::{Span, spans};
use super::table::{Drawing, Section};
use super::{advice, aggregates, course, flows, live, polls, projection, reasons, sweep, traffic};
use crate::figure::STYLE;
use crate::report::{Decision, Outcome, Report, Source};
use crate::words::{duration, percent, plural};

/// The error of an HTML page that cannot be created from a report.
#[derive(Debug, Error)]
#[error("cannot make the HTML report: {0}")]
pub struct HtmlError(String);

/// Returns the report as a single HTML page.
///
/// # Errors
/// If the template fails, which only a bug can cause.
///
/// # Examples
/// ```
/// use rxo_trace::html;
/// use rxo_trace::report::Report;
///
/// let page = html::page(&Report::default())?;
/// assert!(page.contains("</html>"));
/// # Ok::<(), html::HtmlError>(())
/// ```
pub fn page(report: &Report) -> Result<String, HtmlError> {
    Page::of(report).render().map_err(HtmlError::of)
}

impl HtmlError {
    pub(super) fn of(error: askama::Error) -> Self {
        Self(error.to_string())
    }
}

/// Writes [`page`] to `path`, either completely or not at all.
///
/// # Errors
/// If the page cannot be created or written.
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
    lead: Vec<Span>,
    sources: Vec<Origin<'a>>,
    /// The number of further captures, which are not in `sources` and which the headline does not name.
    more_sources: usize,
    command: Option<&'a str>,
    partial: Option<&'a str>,
    notes: Vec<Vec<Span>>,
    tiles: Vec<Tile>,
    course: Option<Drawing>,
    sections: Vec<Section>,
    footer: String,
}

/// A capture that the headline names, and the time at which it was taken.
struct Origin<'a> {
    name: &'a str,
    when: String,
}

/// A headline figure: a number with its name.
pub(super) struct Tile {
    pub(super) label: &'static str,
    pub(super) value: String,
    pub(super) detail: String,
}

impl<'a> Page<'a> {
    fn of(report: &'a Report) -> Self {
        let sources: Vec<Origin> = report.sources.iter().map(origin).take(MOST_NAMES).collect();
        let first = sources.first().map_or("captures", |source| source.name);
        Self {
            title: format!("What coalescing would do: {first}"),
            style: format!("{}{STYLE}", include_str!("../../templates/report.css")),
            script: SCRIPT,
            script_hash: SCRIPT_HASH,
            headline: headline(report),
            lead: spans(&report.decision.sentence),
            more_sources: report.sources.len() - sources.len(),
            sources,
            command: report.command.as_deref(),
            partial: report.partial.as_deref(),
            notes: report.notes.iter().map(|note| spans(note)).collect(),
            tiles: tiles(report),
            course: course::drawing(&report.course),
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
        live::section(report.live.as_ref()),
        polls::section(report),
        advice::section(report.advice.as_ref()),
        aggregates::section(outcome),
        Some(reasons::section(outcome)),
        aggregates::hold_section(outcome),
        sweep::section(report.sweep.as_ref()),
        projection::section(report.projection.as_ref()),
        flows::section(report),
        Some(traffic::section(report)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn origin(source: &Source) -> Origin<'_> {
    let when = match source.packets {
        0 => "no packets".to_owned(),
        _ => format!("{}, {}", traffic::started(source), duration(source.duration_ns as f64)),
    };
    Origin { name: &source.name, when }
}

pub(super) fn headline(report: &Report) -> String {
    let Decision { fewer_packets, is_hypothetical, ref poll, .. } = report.decision;
    if report.decision.packets == 0 {
        return "There were no packets".to_owned();
    }
    if report.decision.packets == report.decision.deliveries {
        return "Coalescing would not spare a single packet".to_owned();
    }
    let fewer = percent(fewer_packets);
    if is_hypothetical {
        return format!("{fewer} fewer packets if a host waited as long as --poll {poll}");
    }
    let today = report.live.as_ref().map(|live| format!(", {} today", live::today(live)));
    format!("{fewer} fewer packets for the host's stack{}", today.unwrap_or_default())
}

pub(super) fn tiles(report: &Report) -> Vec<Tile> {
    let Report { outcome, decision, .. } = report;
    let Outcome { hold_ns, .. } = outcome;
    let tile = |label, value, detail| Tile { label, value, detail };
    vec![
        tile(
            if decision.is_hypothetical { "Fewer packets, no prediction" } else { "Fewer packets" },
            percent(decision.fewer_packets),
            format!(
                "{}, {}",
                plural(decision.packets, "packet"),
                plural(decision.deliveries, "delivery")
            ),
        ),
        live::cores(report.live.as_ref(), range).unwrap_or_else(|| cores(decision)),
        tile(
            "Held, 99 % at most",
            duration(decision.hold_p99_ns as f64),
            format!(
                "median {}, longest {}",
                duration(hold_ns.p50 as f64),
                duration(hold_ns.max as f64)
            ),
        ),
        tile(
            "Decision",
            verdict(decision).to_owned(),
            format!("{}, --poll {}", outcome.policy, decision.poll),
        ),
    ]
}

fn cores(decision: &Decision) -> Tile {
    let value = match (decision.cores_without, decision.cores_with) {
        (Some(without), Some(with)) => range(without, with),
        _ => "-".to_owned(),
    };
    let detail = "without → with coalescing, at this rate".to_owned();
    Tile { label: "Cores busy with receiving", value, detail }
}

/// Formats the numbers of cores without and with coalescing.
fn range(before: f64, after: f64) -> String {
    if before < 0.001 {
        return "< 0.001".to_owned();
    }
    let digits = digits(before.max(after));
    format!("{before:.digits$} → {after:.digits$}")
}

/// Returns the number of decimals that gives `cores` three significant digits, at most three. Both numbers of a
/// tile have the same number of decimals, so that they can be compared at a glance.
const fn digits(cores: f64) -> usize {
    match cores {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    }
}

const fn verdict(decision: &Decision) -> &'static str {
    match decision.is_worth_it {
        Some(true) => "Worth it",
        Some(false) => "Not worth it",
        None => "Open",
    }
}

const SCRIPT: &str = include_str!("../../templates/report.js");
/// The hash of [`SCRIPT`], so that the browser runs only this script. If the hash is wrong, the
/// browser prints the right one in its console, and the test with a real browser fails.
const SCRIPT_HASH: &str = "sha256-p6EUCgW8hinuwgCfRIaPLLn2cIgwEP2trsxVX1ty4ro=";
/// The maximum number of file names under the headline. The table of captures contains all names.
const MOST_NAMES: usize = 6;
