//! Runs rxo's host for a measurement: on a thread in the lab's host namespace, on the receiver's core.

use std::net::IpAddr;
use std::sync::mpsc::{Sender, channel};

use anyhow::{Context, Result};
use rxo::DeviceError;
use rxo::live::host::{self, RunningHost};
use rxo::live::{Device, DeviceOptions};
use rxo::tcp::AckPolicy;
use rxo_coalesce::Config as EngineConfig;
use rxo_driver::{DeviceName, clock};
use rxo_host::{HostConfig, HostCounters, IpCidr, StageTimer};
use rxo_testbed::Lab;

use super::stack::{Case, Place, Stack};

/// A running host. Dropping this stops it.
pub(super) struct Worker {
    pub(super) host: RunningHost,
    /// Kernel thread id, to read the host's processor time.
    pub(super) thread_id: u32,
}

impl Worker {
    /// Starts a host for `case` in the lab; with `is_timed` some of its turns are timed.
    ///
    /// # Errors
    /// If the device cannot be opened or the host cannot be made.
    pub(super) fn start(
        lab: &Lab,
        case: Case,
        core: Option<usize>,
        is_timed: bool,
    ) -> Result<Self> {
        let config = config(case.stack, lab.host_address())?;
        let config = HostConfig { stage_timer: is_timed.then_some(TIMER), ..config };
        let (tell, told) = channel();
        let device = match case.place {
            Place::Wire => format!("packet:{}", Lab::WIRE_INTERFACE),
            Place::Guest => format!("tap:{TAP}"),
        };
        let device: DeviceName = device.parse()?;
        let open = move || open(&device, core, &tell);
        let start = || host::start_with(Lab::WIRE_INTERFACE.to_owned(), open, config);
        let host = lab.host().run(start)??;
        if case.place == Place::Guest {
            bridge(lab)?;
        }
        let thread_id = told.recv().context("the host's thread has no number")?;
        Ok(Self { host, thread_id })
    }

    /// Returns the host's current counters.
    ///
    /// # Errors
    /// If the host has ended.
    pub(super) fn counters(&self) -> Result<HostCounters> {
        self.host.counters().context("the host has ended before its time")
    }

    /// Stops the host and returns its totals.
    ///
    /// # Errors
    /// The error that ended the host before it was stopped.
    pub(super) fn finish(self) -> Result<HostCounters> {
        let outcome = self.host.stop();
        outcome.result?;
        Ok(outcome.counters)
    }
}

/// Opens the device on the host's thread, and reports that thread's id to `tell`.
fn open(
    device: &DeviceName,
    core: Option<usize>,
    tell: &Sender<u32>,
) -> Result<Device, DeviceError> {
    if let Some(core) = core {
        rxo_testbed::pin_to_core(core).map_err(|error| DeviceError::Usage(error.to_string()))?;
    }
    // The thread that started the host waits for this id.
    _ = tell.send(rxo_testbed::thread_id());
    Device::open(device, DeviceOptions { bring_up: true, ..DeviceOptions::default() })
}

/// Bridges the wire and the guest's TAP, as a driver domain would.
fn bridge(lab: &Lab) -> Result<()> {
    let bridge = lab.host().interface("br0");
    bridge.create_bridge()?;
    for port in [Lab::WIRE_INTERFACE, TAP] {
        lab.host().interface(port).join_bridge(&bridge)?;
    }
    Ok(bridge.up()?)
}

fn config(stack: Stack, address: IpAddr) -> Result<HostConfig> {
    let address = IpCidr::new(address, PREFIX_BITS)?;
    let mut config = HostConfig {
        engine: EngineConfig::new(stack.policy(), rxo::random_seed()),
        ack_templates: stack.ack_offload,
        ..host::config(vec![address])
    };
    config.tcp.acks = AckPolicy::EverySecondSegment;
    Ok(config)
}

/// Name of the guest's interface.
const TAP: &str = "guest0";
/// Prefix length of the lab's IPv4 network, in bits.
const PREFIX_BITS: u8 = 24;
/// Times every 7th turn. A turn of a bulk transfer has many frames, so reading the clock between stages costs
/// little per frame. The interval is prime, so that it does not align with periodic work.
const TIMER: StageTimer = StageTimer { clock: clock::thread_cpu_ns, every_turns: 7 };
