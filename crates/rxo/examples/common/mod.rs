//! Code that the live examples share: a Linux sender on one core, and on another core the worker between a
//! wire and a TAP, with the receivers behind the TAP.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rxo::driver::{Tap, TapKind};
use rxo::live::{Device, DeviceOptions, Outcome, Station};
use rxo::worker::WorkerConfig;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Lab, LabOptions, pin_to_core};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The core of the sending threads, and of the peer's network stack.
pub(crate) const SENDER_CORE: usize = 0;
/// The core of the worker, and of the receiving threads.
pub(crate) const HOST_CORE: usize = 1;

/// Returns the parameters of the wire between the peer and the worker.
pub(crate) fn wire() -> LabOptions {
    LabOptions { peer_core: Some(SENDER_CORE), ..LabOptions::default() }
}

/// Runs `traffic` through a worker with this configuration. Returns the results of `traffic` and of the
/// worker.
pub(crate) fn through<T>(
    config: WorkerConfig,
    traffic: impl FnOnce(&Lab) -> Result<T>,
) -> Result<(T, Outcome)> {
    const TAP: &str = "rxo0";
    let lab = Lab::through_with(wire())?;
    let tap = lab.host().run(|| Tap::open(TAP, TapKind::Tap))??;
    lab.attach_host(TAP)?;
    let stop = AtomicBool::new(false);
    let (result, outcome) = thread::scope(|scope| {
        let worker = scope.spawn(|| lab.host().run(|| work(&tap, config, &stop)));
        let result = traffic(&lab);
        stop.store(true, Ordering::Relaxed);
        (result, worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    Ok((result?, outcome??))
}

fn work(tap: &Tap, config: WorkerConfig, stop: &AtomicBool) -> Result<Outcome> {
    pin_to_core(HOST_CORE)?;
    let nic = format!("packet:{}", Lab::WIRE_INTERFACE).parse()?;
    let nic = Device::open(&nic, DeviceOptions::default())?;
    let host = Device::of_tap(tap, DeviceOptions::default())?;
    Ok(Station::new(nic, host, config).run(stop, |_| {})?)
}

/// Starts a bulk transfer from the peer to the host.
pub(crate) fn transfer(lab: &Lab, connections: usize) -> Result<BulkTransfer> {
    let config = BulkConfig {
        connections,
        sender_core: Some(SENDER_CORE),
        receiver_core: Some(HOST_CORE),
        ..BulkConfig::default()
    };
    Ok(BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config)?)
}
