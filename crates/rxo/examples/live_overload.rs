//! What overload costs those who ask something meanwhile: many connections send more than the worker's
//! core takes, and a ping goes the same way, with RFC 8289's drops and without, in turn.
//!
//! `cargo run --release -p rxo --example live_overload [ROUNDS] [CONNECTIONS] [POLICY]`. Senders on core 0; the worker
//! and the receivers behind a TAP on core 1, in networks of its own. Compare the rows of one run.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rxo::driver::{Tap, TapKind};
use rxo::live::{self, Device, DeviceOptions, Outcome};
use rxo::worker::{Overload, WorkerConfig};
use rxo::{Policy, Reading};
use rxo_lab::traffic::{BulkConfig, BulkTransfer};
use rxo_lab::{CpuMeter, Lab, LabOptions, become_root_in_user_namespace, pin_to_core};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const SENDER_CORE: usize = 0;
const HOST_CORE: usize = 1;
const WARM_UP: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(5);
const TAP: &str = "rxo0";

/// One measurement.
struct Sample {
    gbit_per_s: f64,
    /// Round trips of the pings that came back, in milliseconds, sorted.
    pings_ms: Vec<f64>,
    pings_lost: usize,
    totals: Reading,
}

fn main() -> Result<()> {
    become_root_in_user_namespace()?;
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let connections = arguments.next().map_or(Ok(400), |text| text.parse())?;
    let name = arguments.next().unwrap_or_else(|| "linux-gro".to_owned());
    let policy = Policy::all().into_iter().find(|policy| policy.name == name);
    let policy = policy.ok_or("there is no such policy")?;
    println!("overload  Gbit/s  ping p50 ms    p99 ms  lost  ring drops  overload drops  frames");
    for _ in 0..rounds {
        for (label, overload) in [("none", None), ("5 ms", Some(Overload::default()))] {
            let Sample { gbit_per_s, pings_ms, pings_lost, totals } =
                measure(policy, overload, connections)?;
            println!(
                "{label:<8}  {gbit_per_s:>6.2}  {:>11.2}  {:>8.2}  {pings_lost:>4}  {:>10}  {:>14}  {:>6}",
                quantile(&pings_ms, 0.5),
                quantile(&pings_ms, 0.99),
                totals.nic_in.ring_drops,
                totals.overload,
                totals.nic_in.frames,
            );
        }
    }
    Ok(())
}

fn measure(policy: Policy, overload: Option<Overload>, connections: usize) -> Result<Sample> {
    let lab = Lab::through_with(LabOptions { peer_core: Some(0), ..LabOptions::default() })?;
    let tap = lab.host().run(|| Tap::open(TAP, TapKind::Tap))??;
    lab.attach_host(TAP)?;
    let stop = AtomicBool::new(false);
    let config = WorkerConfig { overload, ..WorkerConfig::new(policy) };
    let (sample, outcome) = thread::scope(|scope| {
        let worker = scope.spawn(|| lab.host().run(|| work(&tap, config, &stop)));
        let sample = traffic(&lab, connections);
        stop.store(true, Ordering::Relaxed);
        (sample, worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    Ok(Sample { totals: outcome??.totals, ..sample? })
}

fn work(tap: &Tap, config: WorkerConfig, stop: &AtomicBool) -> Result<Outcome> {
    pin_to_core(HOST_CORE)?;
    let nic = format!("packet:{}", Lab::WIRE_INTERFACE).parse()?;
    let nic = Device::open(&nic, DeviceOptions::default())?;
    let host = Device::of_tap(tap, DeviceOptions::default())?;
    Ok(live::run(nic, host, config, stop, |_| {})?)
}

fn traffic(lab: &Lab, connections: usize) -> Result<Sample> {
    let config = BulkConfig {
        connections,
        sender_core: Some(SENDER_CORE),
        receiver_core: Some(HOST_CORE),
        ..BulkConfig::default()
    };
    let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config)?;
    let meter = CpuMeter::new();
    transfer.measure(WARM_UP, &meter)?;
    let (window, pings) = thread::scope(|scope| {
        let pings = scope.spawn(|| lab.peer().run(|| ping(&lab.host_address().to_string())));
        let window = transfer.measure(WINDOW, &meter);
        (window, pings.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (window, (pings_ms, pings_lost)) = (window?, pings??);
    if !transfer.stop()?.is_intact() {
        return Err("a transfer did not arrive as it was sent".into());
    }
    let totals = Reading::default();
    Ok(Sample { gbit_per_s: window.gbit_per_s(), pings_ms, pings_lost, totals })
}

/// Pings a hundred times a second while the window lasts; the round trips, and how many were lost.
fn ping(address: &str) -> Result<(Vec<f64>, usize)> {
    let count = WINDOW.as_millis() as usize / 10;
    let mut command = Command::new("ping");
    let output = command.args(["-n", "-i", "0.01", "-W", "1", "-c", &count.to_string(), address]);
    let text = String::from_utf8(output.output()?.stdout)?;
    let times = text.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next());
    let mut pings: Vec<f64> = times.map(str::parse).collect::<std::result::Result<_, _>>()?;
    pings.sort_by(f64::total_cmp);
    let lost = count.saturating_sub(pings.len());
    Ok((pings, lost))
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}
