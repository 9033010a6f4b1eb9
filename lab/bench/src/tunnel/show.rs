//! The report as text.

use std::fmt::Write;

use super::{Report, Row, Spread};

/// Returns the table of each workload, the ratios, and the targets.
pub(super) fn text(report: &Report) -> String {
    let mut text = format!("{}\n{}\n", report.machine, report.others);
    for workload in &report.workloads {
        _ = writeln!(
            text,
            "\n{}\n{:<20}{:>22}{:>22}{:>22}",
            workload.name, "", "Gbit/s", "ends, cpu s/GB", "all, cpu s/GB"
        );
        for row in &workload.rows {
            _ = writeln!(text, "{}", line(row));
        }
        for ratio in &workload.ratios {
            _ = writeln!(
                text,
                "rxo-tunnel / {:<14} throughput {:>5.2}, cpu of ends {:>5.2}, of all {:>5.2}",
                ratio.beside, ratio.throughput, ratio.ends, ratio.all
            );
        }
    }
    let Spread { median, low, high } = report.cipher_s_per_gb;
    _ = writeln!(
        text,
        "\ncipher alone, both ends: {median:.3} ({low:.3}-{high:.3}) cpu s for a GB of TCP payload"
    );
    for target in &report.targets {
        let verdict = if target.is_met { "met" } else { "missed" };
        _ = writeln!(text, "{}: {:.2}, {verdict}", target.what, target.is);
    }
    text
}

fn line(row: &Row) -> String {
    let show = |spread: &Spread| {
        let Spread { median, low, high } = spread;
        format!("{median:.2} ({low:.2}-{high:.2})")
    };
    let [rate, ends, all] = [&row.gbit_per_s, &row.ends_s_per_gb, &row.all_s_per_gb].map(show);
    format!("{:<20}{rate:>22}{ends:>22}{all:>22}", row.name)
}
