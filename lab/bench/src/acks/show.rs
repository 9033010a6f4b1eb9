//! Prints the report as a table.

use std::fmt::Write as _;

use super::{Report, Row};

/// Returns the whole report as text.
pub(super) fn table(report: &Report) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", report.machine);
    let _ = writeln!(
        text,
        "ns per ACK or delivery: median (quartiles) of {} rounds taken in turn, warm",
        report.rounds
    );
    let _ = writeln!(text, "{:<21} {:>7} {:>15}  against the target", "case", "ns", "(quartiles)");
    for row in &report.rows {
        let _ = writeln!(text, "{}", line(row).trim_end());
    }
    text
}

fn line(row: &Row) -> String {
    let spread = format!("({:.1}..{:.1})", row.ns_low, row.ns_high);
    let target = row.target_ns.map_or_else(String::new, |most| {
        format!("< {most:.0} {}", if row.ns < most { "ok" } else { "SHORT" })
    });
    format!("{:<21} {:>7.1} {spread:>15}  {target}", row.case, row.ns)
}
