//! Formats figures as lines of text, or as JSON.

use anyhow::Result;
use rxo_console::log;

use super::figures::{Figures, WorkerFigures, WorkerTotals};
use super::plan::Plan;
use crate::numbers::grouped;
use crate::output;

/// Formats the figures of one interval as one line.
///
/// # Errors
/// If the figures cannot be written as JSON.
pub(super) fn interval(plan: &Plan, figures: &Figures) -> Result<String> {
    if plan.json { output::json(figures) } else { Ok(log::for_output(line(figures))) }
}

/// Returns the JSON line that reports how many interval lines were not printed.
pub(super) fn skipped_json(lines: u64) -> String {
    format!("{{\"kind\":\"skipped\",\"intervals\":{lines}}}")
}

/// Returns the plain line that reports how many lines were not printed.
pub(super) fn skipped_text(lines: u64) -> String {
    format!("{lines} lines left out: nobody read them, or they could not be written")
}

/// Formats the totals of the whole transfer.
///
/// # Errors
/// If the totals cannot be written as JSON.
pub(super) fn totals(plan: &Plan, figures: &Figures) -> Result<String> {
    if plan.json { output::json(figures) } else { Ok(log::for_output(lines(figures))) }
}

fn line(figures: &Figures) -> String {
    let Figures { elapsed_s, bytes, gbit_per_s, .. } = figures;
    let mut line =
        format!("{elapsed_s:>7.1} s  {:>15} bytes  {gbit_per_s:.3} Gbit/s", grouped(*bytes));
    if let Some(cost) = figures.cpu_s_per_gb {
        line.push_str(&format!("  {cost:.3} CPU s/GB"));
    }
    if figures.exchanges > 0 {
        let exchanges = figures.exchanges_per_s.round() as u64;
        line.push_str(&format!("  {} exchanges/s", grouped(exchanges)));
    }
    line
}

fn lines(figures: &Figures) -> String {
    let connections = figures.connections.unwrap_or(0);
    let mut text = format!("totals of {connections} connections\n{}", line(figures));
    if let Some(frames) = &figures.frames {
        text.push_str(&format!(
            "\nframes   {} in, {} deliveries ({} frames each), {} out, {} lost before rxo",
            grouped(frames.received),
            grouped(frames.deliveries),
            frames.per_delivery,
            grouped(frames.sent),
            grouped(frames.lost),
        ));
    }
    if let Some(fast_path) = &figures.fast_path {
        text.push('\n');
        text.push_str(&fast_path.text());
    }
    if let Some(times) = &figures.round_trips {
        text.push_str(&format!(
            "\nresponse half within {} us, 99 % within {}, 99.9 % within {}, the slowest {}",
            times.p50_us, times.p99_us, times.p999_us, times.max_us
        ));
    }
    figures.workers.iter().for_each(|worker| text.push_str(&worker_line(worker)));
    for end in &figures.ends {
        text.push_str(&format!(
            "\ncrc32    {}  {} bytes  {}",
            end.crc32,
            grouped(end.bytes),
            end.peer
        ));
    }
    text
}

/// Formats the totals of one worker, beginning with a line break.
fn worker_line(worker: &WorkerFigures) -> String {
    let WorkerFigures { name, bytes, gbit_per_s, totals, .. } = worker;
    let mut line =
        format!("\nworker {name:<2} {:>15} bytes  {gbit_per_s:.3} Gbit/s", grouped(*bytes));
    if let Some(WorkerTotals { connections, cpu_s, misplaced, frames }) = totals {
        let (received, sent) = (grouped(frames.received), grouped(frames.sent));
        line.push_str(&format!(
            "  {connections} connections, {received} frames in, {sent} out, {cpu_s:.3} CPU s"
        ));
        if *misplaced > 0 {
            line.push_str(&format!(", {} MISPLACED", grouped(*misplaced)));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::figures::{Ends, Frames};
    use super::super::meter::{Count, Moment, Reading};
    use super::*;

    #[test]
    fn what_was_measured_is_said() {
        let at = Instant::now();
        let reading = |at, cpu, workers: &[u64]| {
            let count = |&bytes| Count { bytes, exchanges: 0 };
            let workers = workers.iter().map(count).collect();
            Reading { moment: Moment { at, cpu }, workers }
        };
        let begun = reading(at, Duration::ZERO, &[0]);
        let (later, cpu) = (at + Duration::from_secs(2), Duration::from_millis(1_500));
        let ended = reading(later, cpu, &[2_500_000_000]);
        let mut figures = Figures::between("totals", &begun, &begun, &ended);
        assert_eq!(
            line(&figures),
            "    2.0 s    2,500,000,000 bytes  10.000 Gbit/s  0.600 CPU s/GB"
        );
        figures.connections = Some(1);
        let (received, deliveries, sent) = (20, 2, 10);
        figures.frames = Some(Frames { received, deliveries, per_delivery: 10.0, sent, lost: 0 });
        let (peer, crc32) = ("10.0.0.1:7".to_owned(), "0000beef".to_owned());
        figures.ends.push(Ends { peer, bytes: 2_500_000_000, crc32 });
        let text = lines(&figures);
        assert!(text.contains("20 in, 2 deliveries (10 frames each), 10 out"), "{text}");
        assert!(text.ends_with("crc32    0000beef  2,500,000,000 bytes  10.0.0.1:7"), "{text}");
        // Zero bytes in zero time must not divide by zero.
        let nothing = Figures::between("totals", &begun, &begun, &begun);
        assert_eq!(nothing.cpu_s_per_gb, None);
        assert!(nothing.workers.is_empty(), "there is one");
        let (begun, ended) = (reading(at, cpu, &[0, 0]), reading(later, cpu, &[1_000, 3_000_000]));
        let of_two = Figures::between("totals", &begun, &begun, &ended);
        assert_eq!((of_two.bytes, of_two.workers[1].bytes), (3_001_000, 3_000_000));
        let text = lines(&of_two);
        assert!(text.ends_with("worker 2        3,000,000 bytes  0.012 Gbit/s"), "{text}");
    }
}
