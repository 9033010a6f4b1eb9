//! The cores that `rxo analyze --live` predicts, against the processor time of the receiving side: at three loads, before and
//! after the advised wait. A measurement: it prints whether each prediction is within the bar, and fails only if one is far
//! beyond it while the machine is quiet.
//!
//! The receiving side is the kernel's thread that polls the interface, and the thread that reads the stream. The costs are
//! those of `rxo calibrate`. A veth has no interrupts of its own, so of the advised lines only `gro_flush_timeout` applies.
//! The measured cores of a case are those of the second fastest of five windows, in rounds over all cases: others
//! on the machine only add to processor time, so that one disturbed window does not decide.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{CoalescingHold, CpuMeter, KernelGro, Lab, LabOptions, MachineReading};
use serde_json::Value;

use crate::Test;
use crate::process::run_within;

pub(crate) const LONG_TESTS: &[Test] =
    &[("predicted_cores_are_those_of_the_receiving_side", predicted_cores)];

/// The loads, in bytes per second.
const LOADS: [u64; 3] = [20_000_000, 60_000_000, 120_000_000];
/// The wait of the default poll rule, as `gro_flush_timeout` has it.
const ADVISED: Duration = Duration::from_micros(50);
const ROUNDS: usize = 5;
const WINDOW: Duration = Duration::from_secs(2);
/// In its first seconds Linux sends 20 MB/s in bursts of 10 to 45 packets, later of 45. Each burst wakes the receiving side.
const SETTLING: Duration = Duration::from_secs(4);
/// The error that a prediction may have by the bar, and that from which the model must be wrong.
const BAR: f64 = 0.15;
const MOST_ERROR: f64 = 0.5;
/// The use of the machine by other processes, in percent of all cores, from which there is no verdict.
const BUSY_PERCENT: f64 = 10.0;
/// The [`spread`] from which there is no verdict: on a machine shared with other virtual machines the same work takes
/// several times as long at times, which no counter shows.
const MOST_SPREAD: f64 = 1.3;

/// One window of one load: the cores predicted as the host is, and with the advised wait, and those measured.
struct Window {
    today: f64,
    with: f64,
    cores: f64,
    busy_percent: f64,
}

/// The windows of one load.
#[derive(Default)]
struct Case {
    before: Vec<Window>,
    after: Vec<Window>,
}

fn predicted_cores() {
    let lab = Lab::direct_with(KernelGro::On, LabOptions::default()).unwrap();
    let interface = lab.host().interface(Lab::HOST_INTERFACE);
    let poller = interface.receive_in_thread().unwrap().expect("a thread polls the interface");
    let costs = std::env::temp_dir().join(format!("rxo-live-predict-{}.json", std::process::id()));
    let is_calibrated = calibrate(&lab, &costs);
    let hold = interface.coalescing_hold().unwrap();
    let mut cases = LOADS.map(|_| Case::default());
    for _ in 0..ROUNDS {
        for (case, load) in cases.iter_mut().zip(LOADS) {
            case.before.push(measured(&lab, (&hold, Duration::ZERO), load, poller, &costs));
            case.after.push(measured(&lab, (&hold, ADVISED), load, poller, &costs));
        }
    }
    fs::remove_file(&costs).unwrap();
    let lines = cases.iter().zip(LOADS).flat_map(|(case, load)| case.lines(load));
    let wrong: Vec<String> =
        lines.filter_map(|(line, is_wrong)| is_wrong.then_some(line)).collect();
    assert!(!is_calibrated || wrong.is_empty(), "{wrong:#?}");
}

impl Case {
    /// Prints a line for each state of the host, and returns it with `true` if its prediction is wrong. The wait is predicted
    /// from the host as it was before.
    fn lines(&self, load: u64) -> [(String, bool); 2] {
        let Self { before, after } = self;
        let today = median(before, |window| window.today);
        let with = median(before, |window| window.with);
        [("before", today, before), ("after", with, after)].map(|(what, predicted, windows)| {
            let found = quartile(1, windows, |window| window.cores);
            let busy = median(windows, |window| window.busy_percent);
            let error = predicted / found - 1.0;
            let has_verdict = busy < BUSY_PERCENT && spread(windows) < MOST_SPREAD;
            let verdict = match has_verdict {
                true if error.abs() <= BAR => "within the bar",
                true => "beyond the bar",
                false => "no verdict",
            };
            let line = format!(
                "{} MB/s, {what}: predicted {predicted:.3} cores, measured {found:.3} ({:+.0} %), {verdict}, {}; others \
                 used {busy:.0} %",
                load / 1_000_000,
                100.0 * error,
                range(windows)
            );
            println!("{line}");
            (line, error.abs() > MOST_ERROR && has_verdict)
        })
    }
}

/// Returns the median of `value` over the windows.
fn median(windows: &[Window], value: fn(&Window) -> f64) -> f64 {
    quartile(2, windows, value)
}

/// Returns the quartile `number` of `value` over the windows; 2 is the median.
fn quartile(number: usize, windows: &[Window], value: fn(&Window) -> f64) -> f64 {
    let mut values: Vec<f64> = windows.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) * number / 4]
}

/// Returns how many times as much processor time the middle window took as the lower quartile.
fn spread(windows: &[Window]) -> f64 {
    let cores = |number| quartile(number, windows, |window| window.cores);
    cores(2) / cores(1)
}

/// Formats the cores of all windows.
fn range(windows: &[Window]) -> String {
    let cores: Vec<String> = windows.iter().map(|one| format!("{:.3}", one.cores)).collect();
    format!("of {}", cores.join(", "))
}

/// Calibrates into the file `costs`. Returns `true` if the machine was quiet enough for a verdict.
fn calibrate(lab: &Lab, costs: &Path) -> bool {
    let output = run_within(lab.host(), "calibrate --json --seconds 60", Duration::from_secs(180));
    let said = String::from_utf8_lossy(&output.stderr);
    // Exit code 3: the machine was too busy, but the figures are there.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["host"].is_object(), "the kernel's own path is measured: {found}");
    println!("{}\n{}\n{}", found["costs"], found["host"], found["host_basis"]);
    fs::write(costs, &output.stdout).unwrap();
    let is_quiet = output.status.success();
    if !is_quiet {
        println!("no verdict: {said}");
    }
    is_quiet
}

/// Measures the receiving side under `load` while the kernel holds what it merges for a time. In the middle of the
/// window rxo watches the same load; that time does not count, because a socket that reads costs the host something, too.
fn measured(
    lab: &Lab,
    (hold, at_most): (&CoalescingHold, Duration),
    load: u64,
    poller: u32,
    costs: &Path,
) -> Window {
    hold.set(at_most).unwrap();
    let config = BulkConfig { limit_bytes_per_s: Some(load), ..BulkConfig::default() };
    let transfer =
        BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    let meter =
        CpuMeter::new().threads("reader", transfer.receiver_threads()).process("poller", poller);
    transfer.measure(SETTLING, &meter).unwrap();
    let first = Half::of(&transfer, &meter);
    let line =
        format!("analyze --live eth0 --time 2s --json --no-advice --costs {}", costs.display());
    let output = run_within(lab.host(), &line, Duration::from_secs(60));
    let second = Half::of(&transfer, &meter);
    assert!(transfer.stop().unwrap().is_intact());
    hold.set(Duration::ZERO).unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rate = &report["live"]["receivers"][0]["rates"][0];
    Window {
        today: rate["cores_today"].as_f64().unwrap(),
        with: rate["cores_with"].as_f64().unwrap(),
        cores: f64::midpoint(first.cores, second.cores),
        busy_percent: f64::midpoint(first.busy_percent, second.busy_percent),
    }
}

/// One half of a window.
struct Half {
    cores: f64,
    busy_percent: f64,
}

impl Half {
    fn of(transfer: &BulkTransfer, meter: &CpuMeter) -> Self {
        let machine = MachineReading::now().unwrap();
        let window = transfer.measure(WINDOW / 2, meter).unwrap();
        let machine = MachineReading::now().unwrap().since(&machine);
        let used: Duration =
            ["reader", "poller"].iter().map(|part| window.cpu.part(part).unwrap()).sum();
        let all = machine.elapsed.as_secs_f64() * f64::from(machine.cores);
        Self {
            cores: used.as_secs_f64() / window.duration.as_secs_f64(),
            busy_percent: 100.0 * machine.others.as_secs_f64() / all,
        }
    }
}
