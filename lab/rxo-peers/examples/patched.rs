//! Measures programs of others with rxo inside beside the same programs as they are published, in turns:
//! `cargo run --release -p rxo-peers --example patched -- STOCK PATCHED [SECONDS [ROUNDS [PROGRAM…]]]`.
//!
//! STOCK and PATCHED are folders of programs, below the target directory `tunnels/bin` and `patched/bin`. Prints for TCP
//! over one connection and over eight the rate, the processor time of both ends for a GB, and the ratios of the medians.

use std::path::Path;
use std::time::Duration;

use rxo_peers::{Tunnel, TunnelKind, TunnelProgram};
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
    for kind in [TunnelKind::BoringtunCli, TunnelKind::Gotatun] {
        if names.is_empty() || names.iter().any(|name| name == kind.name()) {
            compare(kind, [stock, patched], Duration::from_secs(seconds), rounds)?;
        }
    }
    Ok(())
}

fn compare(kind: TunnelKind, folders: [&String; 2], duration: Duration, rounds: u64) -> Result<()> {
    let start = |folder: &String| {
        let program = TunnelProgram::foreign(kind, Path::new(folder));
        Tunnel::start(&program, &program)
    };
    let tunnels = [start(folders[0])?, start(folders[1])?];
    for connections in [1, 8] {
        let mut turns: [Vec<[f64; 2]>; 2] = Default::default();
        for _ in 0..rounds {
            for (tunnel, turns) in tunnels.iter().zip(&mut turns) {
                turns.push(turn(tunnel, connections, duration)?);
            }
        }
        let [stock, patched] = turns.map(|turns| [0, 1].map(|at| median(&turns, at)));
        println!(
            "{}, {connections} connections: stock {:.2} Gbit/s, {:.1} s/GB; patched {:.2} Gbit/s, {:.1} s/GB: {:.2} times the \
             rate, {:.2} of the processor time",
            kind.name(),
            stock[0],
            stock[1],
            patched[0],
            patched[1],
            patched[0] / stock[0],
            patched[1] / stock[1],
        );
    }
    Ok(())
}

/// Returns the rate in Gbit/s, and the processor time of both ends in seconds for a GB.
fn turn(tunnel: &Tunnel, connections: usize, duration: Duration) -> Result<[f64; 2]> {
    let [near, far] = tunnel.processes();
    let meter = CpuMeter::new().process("near", near).process("far", far);
    let config = BulkConfig { connections, ..BulkConfig::default() };
    let transfer = BulkTransfer::start(tunnel.near(), tunnel.far(), Tunnel::FAR[0], &config)?;
    std::thread::sleep(WARM_UP);
    let window = transfer.measure_at_least(duration, 1 << 20, &meter)?;
    let report = transfer.stop()?;
    if !report.is_intact() {
        return Err(format!("a byte is wrong: {report:?}").into());
    }
    let (bytes, seconds) = (window.received_bytes as f64, window.duration.as_secs_f64());
    let ends: Duration = window.cpu.parts.iter().map(|(_, time)| *time).sum();
    Ok([bytes * 8.0 / 1e9 / seconds, ends.as_secs_f64() / (bytes / 1e9)])
}

fn median(turns: &[[f64; 2]], at: usize) -> f64 {
    let mut sorted: Vec<f64> = turns.iter().map(|turn| turn[at]).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
