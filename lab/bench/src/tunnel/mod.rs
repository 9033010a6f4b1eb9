//! `rxo-lab bench tunnel`: compares rxo's WireGuard tunnel with other implementations, between two networks
//! on a wire.
//!
//! All tunnels run at the same time and take turns: TCP over one connection and over eight, UDP in one flow.
//! Every TCP byte is checked. Throughput counts payload. Processor time is given twice: for the programs at
//! both ends with the kernel's work on their account, and for all participants, which adds sender, receiver
//! and softirq threads. A veth charges the sender for the receive work of the other side, so only sums are
//! meaningful.

mod contender;
mod datagrams;
mod floor;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use rxo_demo::stats::Quartiles;
use rxo_peers::Tunnel;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{CpuMeter, CpuUse};
use serde::Serialize;

use self::contender::{Contender, RXO};
use self::datagrams::Flow;
use crate::rounds::{Rounds, Run};

/// Options of `rxo-lab bench tunnel`.
#[derive(Args, Debug)]
pub struct TunnelArgs {
    #[command(flatten)]
    rounds: Rounds,
    /// Seconds that each tunnel is measured in a round.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

const ROUNDS: u32 = 5;
/// Time until a new connection has reached its full window.
const WARM_UP: Duration = Duration::from_millis(500);
const WIREGUARD_GO: &str = "wireguard-go";
const BORINGTUN_CLI: &str = "boringtun-cli";

/// The traffic that is sent through the tunnels.
#[derive(Clone, Copy)]
enum Traffic {
    Tcp { connections: usize },
    Udp,
}

const WORKLOADS: [(&str, Traffic); 3] = [
    ("TCP, 1 connection", Traffic::Tcp { connections: 1 }),
    ("TCP, 8 connections", Traffic::Tcp { connections: 8 }),
    ("UDP, 1 flow of 1,200-byte datagrams", Traffic::Udp),
];

/// The report of a run.
#[derive(Debug, Serialize)]
struct Report {
    workloads: Vec<Workload>,
    cipher_s_per_gb: Quartiles,
    targets: Vec<Target>,
}

#[derive(Debug, Serialize)]
struct Workload {
    name: &'static str,
    rows: Vec<Row>,
    ratios: Vec<Ratio>,
}

/// Results of one tunnel under one workload.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    gbit_per_s: Quartiles,
    ends_s_per_gb: Quartiles,
    all_s_per_gb: Quartiles,
}

/// Ratios of rxo-tunnel's medians, on one thread, to those of another tunnel.
#[derive(Debug, Serialize)]
struct Ratio {
    beside: &'static str,
    throughput: f64,
    ends: f64,
    all: f64,
}

#[derive(Debug, Serialize)]
struct Target {
    what: &'static str,
    is: f64,
    is_met: bool,
}

/// Results of one turn of one tunnel.
struct Turn {
    gbit_per_s: f64,
    ends_s_per_gb: f64,
    all_s_per_gb: f64,
}

/// Measures all tunnels, and prints the report.
///
/// # Errors
/// If the networks cannot be made, a program fails, or a byte is wrong.
pub(crate) fn run(args: &TunnelArgs) -> Result<()> {
    rxo_testbed::become_root_in_user_namespace()?;
    let here = std::env::current_exe()?;
    let beside = here.parent().and_then(std::path::Path::parent).context("no target directory")?;
    // `cargo xtask` installs the programs of others there.
    let foreign = beside.join("tunnels/bin");
    let contenders = contender::start(&here.with_file_name("rxo-tunnel"), &foreign)?;
    let run = args.rounds.begin(ROUNDS);
    let mut workloads = Vec::new();
    for (name, traffic) in WORKLOADS {
        eprintln!("tunnel: {name}");
        workloads.push(workload(name, traffic, &contenders, (&run, args))?);
    }
    let cipher = run.measure(&mut [()], |()| "cipher".to_owned(), |()| floor::seconds_per_gb())?;
    let (cipher_s_per_gb, targets) = (Quartiles::of(cipher.concat()), targets(&workloads[0]));
    run.print(&Report { workloads, cipher_s_per_gb, targets })
}

fn workload(
    name: &'static str,
    traffic: Traffic,
    contenders: &[Contender],
    (run, args): (&Run, &TunnelArgs),
) -> Result<Workload> {
    let duration = Duration::from_secs(args.seconds);
    let mut measured: Vec<&Contender> = contenders.iter().collect();
    let name_of = |it: &&Contender| it.name.to_owned();
    let turns = run.measure(&mut measured, name_of, |it| turn(&it.tunnel, traffic, duration))?;
    let rows: Vec<Row> = contenders.iter().zip(turns).map(|(it, all)| row(it.name, &all)).collect();
    let ratios = ratios(&rows);
    Ok(Workload { name, rows, ratios })
}

fn turn(tunnel: &Tunnel, traffic: Traffic, duration: Duration) -> Result<Turn> {
    let [near, far] = tunnel.processes();
    let meter = CpuMeter::new().process("near", near).process("far", far);
    let (from, to, address) = (tunnel.near(), tunnel.far(), Tunnel::FAR[0]);
    match traffic {
        Traffic::Tcp { connections } => {
            let config = BulkConfig { connections, ..BulkConfig::default() };
            let transfer = BulkTransfer::start(from, to, address, &config)?;
            std::thread::sleep(WARM_UP);
            let window = transfer.measure_at_least(duration, 1 << 20, &meter)?;
            let report = transfer.stop()?;
            anyhow::ensure!(report.is_intact(), "a byte is wrong: {report:?}");
            Ok(Turn::of(window.received_bytes as f64, window.duration.as_secs_f64(), &window.cpu))
        }
        Traffic::Udp => {
            let flow = Flow::start(from, to, address)?;
            std::thread::sleep(WARM_UP);
            let taken = flow.measure(duration, &meter)?;
            flow.stop()?;
            Ok(Turn::of(taken.bytes, taken.seconds, &taken.cpu))
        }
    }
}

impl Turn {
    fn of(bytes: f64, seconds: f64, cpu: &CpuUse) -> Self {
        let ends: Duration = cpu.parts.iter().map(|(_, time)| *time).sum();
        let per_gb = |time: Duration| time.as_secs_f64() / (bytes / 1e9);
        Self {
            gbit_per_s: bytes * 8.0 / 1e9 / seconds,
            ends_s_per_gb: per_gb(ends),
            all_s_per_gb: per_gb(cpu.total()),
        }
    }
}

fn row(name: &'static str, turns: &[Turn]) -> Row {
    Row {
        name,
        gbit_per_s: Quartiles::over(turns, |turn| turn.gbit_per_s),
        ends_s_per_gb: Quartiles::over(turns, |turn| turn.ends_s_per_gb),
        all_s_per_gb: Quartiles::over(turns, |turn| turn.all_s_per_gb),
    }
}

/// Returns the ratios of rxo-tunnel to each other tunnel.
fn ratios(rows: &[Row]) -> Vec<Ratio> {
    let Some(own) = rows.iter().find(|row| row.name == RXO) else { return Vec::new() };
    let ratio = |row: &Row| Ratio {
        beside: row.name,
        throughput: own.gbit_per_s.median / row.gbit_per_s.median,
        ends: own.ends_s_per_gb.median / row.ends_s_per_gb.median,
        all: own.all_s_per_gb.median / row.all_s_per_gb.median,
    };
    rows.iter().filter(|row| row.name != RXO).map(ratio).collect()
}

fn targets(tcp: &Workload) -> Vec<Target> {
    let beside = |name: &str| tcp.ratios.iter().find(|ratio| ratio.beside == name);
    let at_least = |what, is, least| Target { what, is, is_met: is >= least };
    let mut targets = Vec::new();
    if let Some(go) = beside(WIREGUARD_GO) {
        let what = "throughput beside wireguard-go, at least 1.2";
        targets.push(at_least(what, go.throughput, 1.2));
        let what = "cpu of ends beside wireguard-go, at most 0.8";
        targets.push(Target { what, is: go.ends, is_met: go.ends <= 0.8 });
    }
    if let Some(boringtun) = beside(BORINGTUN_CLI) {
        let what = "throughput beside boringtun-cli, at least 6";
        targets.push(at_least(what, boringtun.throughput, 6.0));
    }
    targets
}
