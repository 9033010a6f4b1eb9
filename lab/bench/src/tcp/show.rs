//! Prints the report as a table.

use std::fmt::Write as _;

use super::lineup::Kind;
use super::memory::Memory;
use super::stack::Reading;
use super::{Report, Row};

/// Returns the whole report as text.
pub(super) fn table(report: &Report) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", report.machine);
    let _ = writeln!(
        text,
        "payload Gbit for each CPU second: median (quartiles) of {} rounds taken in turn",
        report.rounds
    );
    let mut race = String::new();
    for row in &report.rows {
        let title = title(row);
        if title != race {
            let _ = writeln!(text, "\n{title}");
            race = title;
        }
        let _ = writeln!(text, "{}", line(row));
    }
    if let Some(measured) = report.memory {
        let _ = writeln!(text, "\n{}", memory(measured));
    }
    text
}

fn memory(memory: Memory) -> String {
    let Memory { connections, unused_bytes, unread_bytes, used_bytes } = memory;
    format!(
        "resident memory of each end of {connections} connections through rxo-host: {unused_bytes} bytes idle, \
         {unread_bytes} with 16 KiB that was not read, {used_bytes} idle again"
    )
}

fn title(row: &Row) -> String {
    let kind = match row.kind {
        Kind::Receive => "receiving",
        Kind::EndToEnd => "sending and receiving",
    };
    let checksums =
        if row.checksums { "checksums in software" } else { "checksums left to a device" };
    let timestamps = if row.timestamps { "timestamps" } else { "no timestamps" };
    let reading = match row.reading {
        Reading::Copied => "",
        Reading::InPlace => ", read in place",
    };
    let link = if row.takes_large { ", the link takes large sends" } else { "" };
    format!("{kind}, {} connections, {checksums}, {timestamps}{reading}{link}", row.connections)
}

fn line(row: &Row) -> String {
    let spread = format!("({:.1}..{:.1})", row.gbit_low, row.gbit_high);
    let Row { contender, gbit, ns_per_segment, times_the_first, .. } = row;
    format!(
        "  {contender:<22} {gbit:>7.1} {spread:>15} {ns_per_segment:>8.1} ns a segment  x {times_the_first:.2}"
    )
}
