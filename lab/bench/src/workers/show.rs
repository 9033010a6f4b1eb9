//! The figures as a table.

use std::fmt::Write;

use super::Figures;

pub(super) fn table(figures: &Figures) -> String {
    let mut text = format!("{}\n\n", figures.machine);
    text += "bytes         workers  ns a frame  quartiles      times one\n";
    for row in &figures.rows {
        let [median, low, high] = row.ns_per_frame;
        let (bytes, quartiles) = (
            if row.is_copied { "copied once" } else { "headers read" },
            format!("{low:.1}-{high:.1}"),
        );
        let (workers, times) = (row.workers, row.times_one);
        _ = writeln!(text, "{bytes:<13} {workers:>7} {median:>11.1}  {quartiles:<13} {times:>9.2}");
    }
    let [one, all] = figures.copied_bytes_a_second.map(|rate| rate / 1e9);
    let others = figures.others * 100.0;
    _ = writeln!(text, "\ncopying alone: {one:.1} GB/s by one thread, {all:.1} GB/s by all");
    _ = writeln!(text, "others used {others:.0} % of the processors meanwhile");
    text
}
