//! Measures latency under overload: many connections send more than the worker's core can process, and a ping
//! takes the same path. Rounds with the drops of RFC 8289 alternate with rounds without them.
//!
//! `cargo run --release -p rxo --example live_overload [ROUNDS] [CONNECTIONS] [POLICY]`. The senders run on core 0, the
//! worker and the receivers behind a TAP on core 1, in network namespaces. Only rows of the same run can be compared.

mod common;

use std::process::Command;
use std::thread;
use std::time::Duration;

use rxo::worker::{Overload, WorkerConfig};
use rxo::{Policy, Reading};
use rxo_testbed::{CpuMeter, Lab, become_root_in_user_namespace};

use crate::common::{Result, through, transfer};

const WARM_UP: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(5);

/// The results of one round: of the transfers, and of the pings at the same time.
struct Sample {
    gbit_per_s: f64,
    /// Round-trip times of the answered pings, in milliseconds, sorted.
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
    let config = WorkerConfig { overload, ..WorkerConfig::new(policy) };
    let (sample, outcome) = through(config, |lab| traffic(lab, connections))?;
    Ok(Sample { totals: outcome.totals.all, ..sample })
}

fn traffic(lab: &Lab, connections: usize) -> Result<Sample> {
    let transfer = transfer(lab, connections)?;
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

/// Sends a hundred pings a second to `address` during the measurement. Returns the sorted round-trip times in
/// milliseconds, and the number of lost pings.
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
