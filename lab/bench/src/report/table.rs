//! Prints the report as a table for a terminal or a document.

use std::fmt::Write as _;

use super::targets;
use super::{Report, Row};
use crate::lineup::Checksum;
use crate::race::Cache;

/// Returns the whole report as text.
pub(crate) fn print(report: &Report) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", report.machine);
    let _ = writeln!(
        text,
        "ns per packet: median (quartiles) of {} rounds taken in turn; batches of {}; \
         packets per delivery",
        report.rounds, report.batch_frames
    );
    for cache in [Cache::Warm, Cache::Cold] {
        for checksum in [Checksum::Trusted, Checksum::Verified] {
            section(&mut text, report, cache, checksum);
        }
    }
    for line in &report.left_out {
        let _ = writeln!(text, "\nleft out: {line}");
    }
    text
}

fn section(text: &mut String, report: &Report, cache: Cache, checksum: Checksum) {
    let rows: Vec<&Row> =
        report.rows.iter().filter(|row| row.cache == cache && row.checksum == checksum).collect();
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", title(cache, checksum));
    let _ = writeln!(
        text,
        "{:<11} {:<7} {:<18} {:>8} {:>17} {:>9}  against the target",
        "workload", "engine", "configuration", "ns", "(quartiles)", "pkts/dlv"
    );
    let mut last = "";
    for row in rows {
        let workload = if row.workload == last { "" } else { row.workload };
        last = row.workload;
        let _ = writeln!(text, "{}", line(workload, row).trim_end());
    }
}

const fn title(cache: Cache, checksum: Checksum) -> &'static str {
    match (cache, checksum) {
        (Cache::Warm, Checksum::Trusted) => "WARM, headers only (checksums trusted)",
        (Cache::Cold, Checksum::Trusted) => "COLD, headers only (checksums trusted)",
        (Cache::Warm, Checksum::Verified) => "WARM, checksums verified",
        (Cache::Cold, Checksum::Verified) => "COLD, checksums verified",
    }
}

fn line(workload: &str, row: &Row) -> String {
    let spread = format!("({:.1}..{:.1})", row.ns_low, row.ns_high);
    format!(
        "{workload:<11} {:<7} {:<18} {:>8.1} {spread:>17} {:>9.2}  {}",
        row.engine.name(),
        row.variant,
        row.ns_per_packet,
        row.packets_per_aggregate,
        [against_target(row), against_dpdk(row)].join(" ").trim()
    )
}

fn against_target(row: &Row) -> String {
    row.target_ns.map_or_else(String::new, |most| {
        format!("<= {most:.0} {};", verdict(row.ns_per_packet <= most))
    })
}

fn against_dpdk(row: &Row) -> String {
    let Some(times) = row.times_faster_than_dpdk else { return String::new() };
    let verdict = match targets::times_faster(row.workload, row.cache) {
        Some(wanted) => format!(" (>= {wanted:.1} {})", verdict(times >= wanted)),
        None => String::new(),
    };
    format!("{times:.1} x DPDK's best{verdict}")
}

const fn verdict(reached: bool) -> &'static str {
    if reached { "ok" } else { "SHORT" }
}
