//! The report as text.

use super::case::Case;
use super::memory::Memory;
use super::place::Stack;
use super::{Measured, RFC_6928, Report, Row, Spread};

/// Prints the report as tables.
pub(super) fn table(report: &Report) {
    println!(
        "{:<10} {:>5} {:>4} {:>3} {:>5} {:>5} {:>4}  {:>19} {:>19} {:>5}  {:>11} {:>5}  {:>11} {:>5}  {:>13}",
        "the stack",
        "MTU",
        "TSO",
        "ms",
        "loss",
        "conns",
        "MB",
        "Linux, Gbit/s",
        "rxo, Gbit/s",
        "ratio",
        "CPU s",
        "ratio",
        "own CPU s",
        "ratio",
        "to peer, 1000"
    );
    report.rows.iter().for_each(show_row);
    for memory in &report.memory {
        show_memory(memory);
    }
    println!(
        "\nMedians of {} rounds, quartiles in brackets. Whoever sends has {}; rxo begins with {} and has {} workers. CPU: of the whole machine, Linux and rxo, to 10 ms. Own CPU: of those that take \
         part, where the machine does other things, too. To peer: \
         frames that the peer has received, with Linux and with rxo.\n{}",
        report.rounds,
        report.congestion,
        begins_with(&report.initial_window),
        report.workers,
        report.machine
    );
}

fn begins_with(initial_window: &str) -> String {
    match initial_window {
        RFC_6928 => "the initial window of RFC 6928".to_owned(),
        segments => format!("{segments} segments"),
    }
}

fn show_row(row: &Row) {
    let Case { net, connections, direction, bytes } = row.case;
    let tso = if net.tso { "on" } else { "off" };
    print!(
        "{direction:<10} {:>5} {tso:>4} {:>3} {:>4}% {connections:>5} {:>4}  ",
        net.mtu,
        net.delay_ms,
        net.loss_percent,
        bytes / 1_000_000
    );
    match (&row.measured, &row.failure) {
        (Some(measured), _) => show_measured(measured, bytes),
        (None, failure) => println!("failed: {}", failure.as_deref().unwrap_or("for no reason")),
    }
}

fn show_measured(measured: &Measured, bytes: u64) {
    let Measured { linux, rxo, rate_ratio, processor_ratio, own_ratio } = measured;
    let rate = |seconds: f64| bytes as f64 * 8.0 / 1e9 / seconds;
    let rates =
        |of: &Spread| format!("{:.3} ({:.3}-{:.3})", rate(of.seconds), rate(of.high), rate(of.low));
    println!(
        "{:>19} {:>19} {rate_ratio:>5.2}  {:>5.2} {:>5.2} {processor_ratio:>5.2}  {:>5.2} {:>5.2} {own_ratio:>5.2}  {:>6.1} {:>6.1}",
        rates(linux),
        rates(rxo),
        linux.processor_seconds,
        rxo.processor_seconds,
        linux.own_seconds,
        rxo.own_seconds,
        linux.peer_frames / 1e3,
        rxo.peer_frames / 1e3,
    );
}

fn show_memory(memory: &Memory) {
    let whose = match memory.stack {
        Stack::Linux => "Linux, in the kernel",
        Stack::Rxo => "rxo, the whole process",
    };
    println!(
        "memory of each of {} connections that receive, {whose}: {} KiB idle, {} KiB active",
        memory.connections,
        memory.idle_bytes.div_ceil(1_024),
        memory.active_bytes.div_ceil(1_024),
    );
}
