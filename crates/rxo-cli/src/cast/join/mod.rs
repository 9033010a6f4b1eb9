//! `rxo cast join`: joins a cast on behalf of another host, such as a network namespace, or this system
//! behind a TAP.
//!
//! Forwards frames between two devices: an interface of the network, and the device behind which that host is.
//! [`Join`] decides about each frame.

mod counters;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use rxo::desk::{Desk, Reply};
use rxo::live::{Device, DeviceOptions};
use rxo_confine::Confinement;
use rxo_console::log::{self, Form};
use rxo_console::printer::Printer;
use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_driver::wait::{Interest, WaitList};
use rxo_driver::{DeviceName, DeviceSink, DeviceSource, clock, on_wire};
use rxo_frame::{Frame, Instant, LinkKind};
use rxo_host::join::{FrameDecision, Join};
use serde_json::Value;

use super::addresses;
use crate::control::{ControlAddresses, serve_metrics};
use crate::exit::usage;
use crate::flags::CastJoinFlags;
use crate::numbers::grouped;
use crate::output;
use crate::sandbox::{Sandbox, warn_of_gaps, with_files_removed};
use crate::stop;

/// Forwards frames until a signal arrives.
///
/// # Errors
/// If a flag is invalid, a device cannot be opened, or fails while in use.
pub(crate) fn command(flags: &CastJoinFlags) -> Result<()> {
    let addresses = ControlAddresses::of_metrics(&flags.metrics)?;
    with_files_removed(&flags.user, addresses.paths().collect(), || join(flags, &addresses))
}

fn join(flags: &CastJoinFlags, addresses: &ControlAddresses) -> Result<()> {
    let (sender, group) = addresses::channel(&flags.source, &flags.group)?;
    let join = Join::new(sender, group).map_err(|error| usage(error.to_string()))?;
    let channel = join.channel();
    let sandbox = Sandbox::from_user_flags(&flags.user)?;
    let sockets = addresses.bind()?;
    let stop = stop::on_request()?;
    let nic = open("--nic", &flags.nic)?;
    let host = open("--host", &flags.host)?;
    let connects = [&flags.nic, &flags.host].iter().any(|name| name.starts_with("virtio:"));
    let in_force = sandbox.confine(Confinement::worker().with_connections(connects))?;
    let mut bridge = Bridge::new(nic, host, join);
    let _read = serve_metrics(sockets, "rxo cast join", &counters::asked_at(bridge.desk.clone()))?;
    log::begin(Form::Plain, &flags.nic)?;
    warn_of_gaps(&in_force);
    let printer = Printer::start(1, |_| String::new(), Arc::clone(&stop))?;
    printer.line(format!("joining {channel} for connections to {sender}"));
    bridge.run(&stop)?;
    let counts = bridge.join.counters();
    printer.line(format!(
        "{} segments to the group given to the receiver, {} outside its window, {} refused",
        grouped(counts.given),
        grouped(counts.outside),
        grouped(counts.refused)
    ));
    printer.finish()
}

fn open(option: &'static str, name: &str) -> Result<Device> {
    let name: DeviceName = name.parse().context(option)?;
    let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
    let mut device = Device::open(&name, options).context(option)?;
    if let Some(line) = device.sink.take_opening_notice() {
        output::note(&line);
    }
    if device.source.capabilities().link != LinkKind::Ethernet {
        return Err(usage(format!(
            "{option} {name}: frames of a group need an Ethernet; choose packet: or tap:"
        )));
    }
    Ok(device)
}

/// Two devices, and the [`Join`] that decides about each frame between them.
struct Bridge {
    /// The source of the nic's frames. This source splits GSO frames, because [`Join`] decides about single
    /// segments.
    nic: DeviceSource,
    nic_sink: DeviceSink,
    host: DeviceSource,
    host_sink: DeviceSink,
    join: Join,
    /// The desk on which other threads ask for the counters.
    desk: Desk<Reply<Value>>,
}

impl Bridge {
    fn new(nic: Device, host: Device, join: Join) -> Self {
        Self {
            nic: on_wire(nic.source, false, None),
            nic_sink: nic.sink,
            host: host.source,
            host_sink: host.sink,
            join,
            desk: Desk::new(),
        }
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<()> {
        let (mut from_nic, mut from_host) = (Vec::new(), Vec::new());
        while !stop.load(Ordering::Relaxed) {
            let now = clock::now();
            self.nic_sink.resume()?;
            self.host_sink.resume()?;
            let mut count = 0;
            if !self.host_sink.is_blocked() {
                count += self.nic.receive(&mut from_nic, BUDGET)?;
                self.carry_in(&from_nic, now)?;
                from_nic.clear();
            }
            if !self.nic_sink.is_blocked() {
                count += self.host.receive(&mut from_host, BUDGET)?;
                self.carry_out(&from_host, now)?;
                from_host.clear();
            }
            self.report(now)?;
            if let Some(reply) = self.desk.take() {
                reply.give(self.counters());
            }
            if count == 0 {
                self.wait(now)?;
            }
        }
        Ok(())
    }

    fn carry_in<B: AsRef<[u8]>>(&mut self, frames: &[Frame<B>], now: Instant) -> Result<()> {
        let verdicts: Vec<_> = frames.iter().map(|frame| self.join.decide(frame, now)).collect();
        let pairs = frames.iter().zip(&verdicts);
        let passed: Vec<Frame<&[u8]>> = pairs
            .filter_map(|(frame, verdict)| match verdict {
                FrameDecision::Pass => Some(frame.borrowed()),
                FrameDecision::Rewritten(bytes) => {
                    Some(Frame { bytes: bytes.as_slice(), ..frame.borrowed() })
                }
                FrameDecision::Drop => None,
            })
            .collect();
        Ok(self.host_sink.send(&passed)?)
    }

    fn carry_out<B: AsRef<[u8]>>(&mut self, frames: &[Frame<B>], now: Instant) -> Result<()> {
        for frame in frames {
            self.join.on_host_frame(frame.bytes(), now);
        }
        let frames: Vec<_> = frames.iter().map(Frame::borrowed).collect();
        Ok(self.nic_sink.send(&frames)?)
    }

    /// Sends the reports of group membership that are due.
    fn report(&mut self, now: Instant) -> Result<(), DeviceError> {
        let reports: Vec<Vec<u8>> = self.join.reports(now).collect();
        let reports: Vec<_> =
            reports.iter().map(|bytes| Frame::new(bytes.as_slice(), now)).collect();
        self.nic_sink.send(&reports)
    }

    fn wait(&self, now: Instant) -> Result<()> {
        let due = self.join.poll_at().map_or(CHECK_INTERVAL, |at| at.since(now));
        let is_blocked = self.nic_sink.is_blocked() || self.host_sink.is_blocked();
        let timeout = if is_blocked { SHORT } else { due.min(CHECK_INTERVAL) };
        let mut list = WaitList::new();
        list.add(Some(&self.nic), Interest::Readable);
        list.add(Some(&self.host), Interest::Readable);
        list.wait(Some(timeout))?;
        Ok(())
    }
}

/// Maximum number of frames that are received from a device at once.
const BUDGET: usize = 256;
/// Pause between two checks of the flag that ends the command.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Pause before sending to a full device again.
const SHORT: Duration = Duration::from_millis(1);
