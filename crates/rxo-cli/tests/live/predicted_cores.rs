//! The cores that `rxo analyze --live` predicts, against the processor time of the receiving side: at three loads, before and
//! after the advised wait. A measurement, which gives no verdict while the machine is busy.
//!
//! The receiving side is the kernel's thread that polls the interface, and the thread that reads the stream. The costs are
//! those of `rxo calibrate`. A veth has no interrupts of its own, so of the advised lines only `gro_flush_timeout` applies.

use std::time::Duration;

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{CpuMeter, KernelGro, Lab, LabOptions, MachineReading};
use serde_json::Value;

use crate::Test;
use crate::process::run_within;

pub(crate) const LONG_TESTS: &[Test] =
    &[("predicted_cores_are_those_of_the_receiving_side", predicted_cores)];

/// The loads, in bytes per second.
const LOADS: [u64; 3] = [20_000_000, 60_000_000, 120_000_000];
const ASSUMED: &str = "packet=800ns,byte=0.3ns,coalesce=30ns,device=100ns,wake=8us";
const WINDOW: Duration = Duration::from_secs(4);
const MOST_ERROR: f64 = 0.15;
/// The use of the machine by other processes, in percent of all cores, from which there is no verdict.
const BUSY_PERCENT: f64 = 10.0;

/// The cores of one load: predicted today, predicted with the advised wait, and measured.
struct Measured {
    today: f64,
    with: f64,
    cores: f64,
    busy_percent: f64,
}

fn predicted_cores() {
    let options = LabOptions { partial_checksums: false, ..LabOptions::default() };
    let lab = Lab::direct_with(KernelGro::On, options).unwrap();
    let interface = lab.host().interface(Lab::HOST_INTERFACE);
    let poller = interface.receive_in_thread().unwrap().expect("a thread polls the interface");
    let costs = calibrated(&lab);
    let mut wrong = Vec::new();
    for load in LOADS {
        let hold = interface.coalescing_hold().unwrap();
        hold.set(Duration::ZERO).unwrap();
        let before = measured(&lab, load, poller, &costs);
        hold.set(Duration::from_micros(50)).unwrap();
        let after = measured(&lab, load, poller, &costs);
        hold.set(Duration::ZERO).unwrap();
        for (what, predicted, found) in
            [("before", before.today, before.cores), ("after", before.with, after.cores)]
        {
            let error = predicted / found - 1.0;
            let busy = before.busy_percent.max(after.busy_percent);
            let line = format!(
                "{} MB/s, {what}: predicted {predicted:.3} cores, measured {found:.3} ({:+.0} %); others used {busy:.0} %",
                load / 1_000_000,
                100.0 * error
            );
            println!("{line}");
            if error.abs() > MOST_ERROR && busy < BUSY_PERCENT {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the costs that a short calibration finds. On a machine that is too busy for one they are assumed, which the
/// output says.
fn calibrated(lab: &Lab) -> String {
    let output = run_within(lab.host(), "calibrate --json --seconds 21", Duration::from_secs(180));
    let Ok(found) = serde_json::from_slice::<Value>(&output.stdout) else {
        println!("assumed costs: {}", String::from_utf8_lossy(&output.stderr));
        return ASSUMED.to_owned();
    };
    let ns = |name: &str| found["costs"][name].as_f64().unwrap();
    format!(
        "packet={}ns,byte={}ns,coalesce={}ns,device={}ns,wake={}ns",
        ns("packet_ns"),
        ns("byte_ns"),
        ns("coalesce_ns"),
        ns("device_ns"),
        ns("wake_ns")
    )
}

/// Measures the receiving side under `load`, and then lets rxo watch the same load: a socket that reads costs the host
/// something, too.
fn measured(lab: &Lab, load: u64, poller: u32, costs: &str) -> Measured {
    let config = BulkConfig { limit_bytes_per_s: Some(load), ..BulkConfig::default() };
    let transfer =
        BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    let meter =
        CpuMeter::new().threads("reader", transfer.receiver_threads()).process("poller", poller);
    transfer.measure(Duration::from_millis(500), &meter).unwrap();
    let machine = MachineReading::now().unwrap();
    let window = transfer.measure(WINDOW, &meter).unwrap();
    let machine = MachineReading::now().unwrap().since(&machine);
    let used: Duration =
        ["reader", "poller"].iter().map(|part| window.cpu.part(part).unwrap()).sum();
    let line = format!("analyze --live eth0 --time 4s --json --no-advice --costs {costs}");
    let output = run_within(lab.host(), &line, Duration::from_secs(60));
    assert!(transfer.stop().unwrap().is_intact());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rate = &report["live"]["receivers"][0]["rates"][0];
    let all = machine.elapsed.as_secs_f64() * f64::from(machine.cores);
    Measured {
        today: rate["cores_today"].as_f64().unwrap(),
        with: rate["cores_with"].as_f64().unwrap(),
        cores: used.as_secs_f64() / window.duration.as_secs_f64(),
        busy_percent: 100.0 * machine.others.as_secs_f64() / all,
    }
}
