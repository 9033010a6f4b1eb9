//! Measures the cost of a live path for several segment limits and pauses, as a basis for choosing defaults.
//!
//! `cargo run --release -p rxo --example live_sweep [ROUNDS]`. A Linux TCP sender runs on core 0, the worker and the
//! receiver behind a TAP on core 1, in network namespaces. All rows are measured in turn, round after round, and the
//! table shows medians, so only the ratios between its rows are meaningful.

mod common;

use std::time::Duration;

use rxo::Policy;
use rxo::coalesce::FlushReason;
use rxo::worker::{Pause, WorkerConfig};
use rxo_testbed::traffic::{PingPongConfig, ping_pong};
use rxo_testbed::{CpuMeter, KernelGro, Lab, become_root_in_user_namespace};

use crate::common::{HOST_CORE, Result, SENDER_CORE, through, transfer, wire};

const WARM_UP: Duration = Duration::from_millis(300);
const WINDOW: Duration = Duration::from_millis(1_500);
const EXCHANGES: Duration = Duration::from_millis(300);

/// A row of the table: a configuration, and the results of its rounds.
struct Row {
    label: String,
    connections: usize,
    /// The configuration of the worker; `None` for a round without rxo, in which the kernel's own GRO coalesces.
    config: Option<WorkerConfig>,
    samples: Vec<Sample>,
}

/// The results of one round with one configuration.
#[derive(Clone, Copy, Default)]
struct Sample {
    gbit_per_s: f64,
    cpu_s_per_gb: f64,
    frames_per_delivery: f64,
    ring_drops: f64,
    retransmissions: f64,
    /// The share of aggregates that were flushed because a segment was not the next of its flow, in percent: a sign of
    /// reordering by the wire.
    out_of_order_percent: f64,
    exchange_us: f64,
}

fn main() -> Result<()> {
    become_root_in_user_namespace()?;
    let rounds = std::env::args().nth(1).map_or(Ok(3), |text| text.parse())?;
    let mut rows = rows();
    for _ in 0..rounds {
        for row in &mut rows {
            let sample = match &row.config {
                None => direct(row.connections)?,
                Some(config) => measure(config, row.connections)?,
            };
            row.samples.push(sample);
        }
    }
    println!(
        "path                             flows  Gbit/s  CPU s/GB  frames/delivery  drops  p50 us"
    );
    rows.iter().for_each(print);
    Ok(())
}

/// Creates the rows of the table. A Linux sender's largest burst is 45 segments of 1,448 bytes with PSH on
/// the last one, so the result depends on how a limit divides 45: 44 leaves one segment over, 23 makes two
/// halves.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for connections in [1, 16] {
        let mut add = |label: String, config| {
            rows.push(Row { label, connections, config, samples: Vec::new() });
        };
        add("kernel, GRO on".into(), None);
        add("none, pause 100 us".into(), Some(config(Policy::none(), 100)));
        for max_segments in [16, 20, 23, 32, 44, u16::MAX] {
            let policy = Policy { max_segments, ..Policy::linux_gro() };
            add(label(max_segments, 100), Some(config(policy, 100)));
        }
        for (max_segments, micros) in
            [(23, 0), (23, 50), (23, 200), (u16::MAX, 50), (u16::MAX, 200)]
        {
            let policy = Policy { max_segments, ..Policy::linux_gro() };
            add(label(max_segments, micros), Some(config(policy, micros)));
        }
    }
    rows
}

fn label(max_segments: u16, micros: u64) -> String {
    format!("linux-gro, {max_segments} segments, {micros} us")
}

fn config(policy: Policy, pause_us: u64) -> WorkerConfig {
    let pause = Pause { time: Duration::from_micros(pause_us), ..Pause::default() };
    WorkerConfig { pause, ..WorkerConfig::new(policy) }
}

fn direct(connections: usize) -> Result<Sample> {
    traffic(&Lab::direct_with(KernelGro::On, wire())?, connections)
}

fn measure(config: &WorkerConfig, connections: usize) -> Result<Sample> {
    let (sample, outcome) = through(config.clone(), |lab| traffic(lab, connections))?;
    let totals = outcome.totals;
    Ok(Sample {
        frames_per_delivery: totals.all.engine.frames_per_delivery(),
        ring_drops: totals.all.nic_in.ring_drops as f64,
        out_of_order_percent: 100.0 * totals.all.engine.flushed(FlushReason::OutOfSequence) as f64
            / totals.all.engine.flushed_total().max(1) as f64,
        ..sample
    })
}

fn traffic(lab: &Lab, connections: usize) -> Result<Sample> {
    let transfer = transfer(lab, connections)?;
    let meter = CpuMeter::new();
    transfer.measure(WARM_UP, &meter)?;
    let window = transfer.measure(WINDOW, &meter)?;
    let report = transfer.stop()?;
    if !report.is_intact() {
        return Err("a transfer did not arrive as it was sent".into());
    }
    let (client_core, server_core) = (Some(SENDER_CORE), Some(HOST_CORE));
    let config = PingPongConfig { duration: EXCHANGES, client_core, server_core };
    let exchange = ping_pong(lab.peer(), lab.host(), lab.host_address(), config)?;
    Ok(Sample {
        gbit_per_s: window.gbit_per_s(),
        cpu_s_per_gb: window.cpu_s_per_gb(),
        retransmissions: report.retransmitted_segments as f64,
        exchange_us: exchange.quantile_us(0.5),
        ..Sample::default()
    })
}

fn print(row: &Row) {
    let median = |figure: fn(&Sample) -> f64| {
        let mut figures: Vec<f64> = row.samples.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or_default()
    };
    println!(
        "{:<31}  {:>5}  {:>6.1}  {:>8.2}  {:>15.1}  {:>5.0}  {:>6.0}  {:>6.1}  {:>6.0}",
        row.label,
        row.connections,
        median(|sample| sample.gbit_per_s),
        median(|sample| sample.cpu_s_per_gb),
        median(|sample| sample.frames_per_delivery),
        median(|sample| sample.ring_drops),
        median(|sample| sample.retransmissions),
        median(|sample| sample.out_of_order_percent),
        median(|sample| sample.exchange_us),
    );
}
