//! Measures programs of others with rxo inside beside the same programs as they are published, in turns:
//! `cargo run --release -p rxo-peers --example patched -- STOCK PATCHED [SECONDS [ROUNDS [PROGRAM…]]]`.
//!
//! STOCK and PATCHED are folders of programs, below the target directory `tunnels/bin` and `patched/bin`. Prints for TCP
//! over one connection and over eight, in each direction, the rate, the processor time of the programs for a GB, the bytes
//! for each call that reads or writes, and the ratios of the medians.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rxo_peers::{Carrier, CarrierKind, Programs, Way};
use rxo_testbed::CpuMeter;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const WARM_UP: Duration = Duration::from_millis(500);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [stock, patched, rest @ ..] = &arguments[..] else {
        return Err("give STOCK PATCHED".into());
    };
    let number = |at: usize, default| rest.get(at).map_or(Ok(default), |text| text.parse());
    let (seconds, rounds) = (number(0, 3)?, number(1, 5)?);
    let names = rest.get(2..).unwrap_or_default();
    rxo_testbed::become_root_in_user_namespace()?;
    let programs = [(stock, false), (patched, true)]
        .map(|(folder, have_rxo)| Programs { folder: PathBuf::from(folder), have_rxo });
    for kind in CarrierKind::PATCHED {
        if names.is_empty() || names.iter().any(|name| name == kind.name()) {
            compare(kind, &programs, Duration::from_secs(seconds), rounds)?;
        }
    }
    Ok(())
}

fn compare(
    kind: CarrierKind,
    programs: &[Programs; 2],
    duration: Duration,
    rounds: u64,
) -> Result<()> {
    let [stock, patched] = programs;
    let carriers = [kind.start(stock, stock)?, kind.start(patched, patched)?];
    for way in 0..carriers[0].ways().len() {
        for connections in [1, 8] {
            let mut turns: [Vec<Turn>; 2] = Default::default();
            for _ in 0..rounds {
                for (carrier, turns) in carriers.iter().zip(&mut turns) {
                    turns.push(turn(carrier, &carrier.ways()[way], connections, duration)?);
                }
            }
            let label = carriers[0].ways()[way].label;
            let [stock, patched] = turns.map(|turns| [0, 1, 2].map(|at| median(&turns, at)));
            println!(
                "{}, {label}, {connections} connections: stock {}; patched {}: {:.2} times the rate, {:.2} of the processor time",
                kind.name(),
                text(stock),
                text(patched),
                patched[0] / stock[0],
                patched[1] / stock[1],
            );
        }
    }
    Ok(())
}

/// The rate in Gbit/s, the processor time of the programs in seconds for a GB, and the bytes for each system call that reads
/// or writes data by file descriptor.
type Turn = [f64; 3];

fn text([rate, time, bytes]: Turn) -> String {
    format!("{rate:.2} Gbit/s, {time:.1} s/GB, {bytes:.0} bytes a call")
}

fn turn(carrier: &Carrier, way: &Way<'_>, connections: usize, duration: Duration) -> Result<Turn> {
    let processes = carrier.processes();
    let meter = processes.iter().fold(CpuMeter::new(), |meter, &id| meter.process("program", id));
    let config = BulkConfig { connections, is_download: way.is_download, ..BulkConfig::default() };
    let transfer = BulkTransfer::start(way.from, way.to, way.addresses[0], &config)?;
    std::thread::sleep(WARM_UP);
    let before = calls(&processes)?;
    let window = transfer.measure_at_least(duration, 1 << 20, &meter)?;
    let calls = calls(&processes)? - before;
    if carrier.ends_connections() {
        let report = transfer.stop()?;
        if !report.is_intact() {
            return Err(format!("a byte is wrong: {report:?}").into());
        }
    }
    let (bytes, seconds) = (window.received_bytes as f64, window.duration.as_secs_f64());
    let time: Duration = window.cpu.parts.iter().map(|(_, time)| *time).sum();
    Ok([
        bytes * 8.0 / 1e9 / seconds,
        time.as_secs_f64() / (bytes / 1e9),
        bytes / (calls.max(1)) as f64,
    ])
}

/// Returns the number of calls like `read` and `write` that the kernel has counted for these processes. Those of sockets
/// alone, such as `recvmsg`, are not among them.
fn calls(processes: &[u32]) -> Result<u64> {
    let mut calls = 0;
    for id in processes {
        let text = fs::read_to_string(format!("/proc/{id}/io"))?;
        let counts = text.lines().filter_map(|line| line.split_once(": "));
        let counts = counts.filter(|(name, _)| matches!(*name, "syscr" | "syscw"));
        calls +=
            counts.map(|(_, count)| count.parse::<u64>()).sum::<std::result::Result<u64, _>>()?;
    }
    Ok(calls)
}

fn median(turns: &[Turn], at: usize) -> f64 {
    let mut sorted: Vec<f64> = turns.iter().map(|turn| turn[at]).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
