//! `rxo cast join`: joins a cast on behalf of another host, such as a namespace or this system on a TAP.
//!
//! Forwards frames between a network interface and the host's device. When the host opens a connection to the
//! sender, the bridge joins the sender's group and rewrites segments to the group into segments of that
//! connection (`filter.rs`, `rewrite.rs`). All other frames pass unchanged in both directions.

mod counters;
mod filter;
mod rewrite;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Error, Result};
use rxo::desk::{Desk, Reply};
use rxo::live::{Device, DeviceOptions};
use rxo::wire::{PROTOCOL_ICMPV6, PROTOCOL_IGMP, Transport, parse};
use rxo_confine::Confinement;
use rxo_console::log::{self, Form};
use rxo_console::printer::Printer;
use rxo_device::{DeviceError, FrameSink, FrameSource};
use rxo_driver::wait::{Interest, WaitList};
use rxo_driver::{DeviceName, DeviceSink, DeviceSource, clock, on_wire};
use rxo_frame::{Frame, Instant, LinkKind};
use rxo_host::IpCidr;
use rxo_host::link::{Channel, Link, LinkConfig};
use serde_json::Value;

use self::filter::{Filter, FrameDecision, MembershipChange};
use super::addresses;
use crate::control::{Doors, serve_metrics};
use crate::exit::usage;
use crate::flags::CastJoinFlags;
use crate::numbers::grouped;
use crate::sandbox::{Sandbox, warn_of_gaps, with_files_removed};
use crate::stop;

/// Forwards frames until a signal arrives.
///
/// # Errors
/// If a flag is invalid, a device cannot be opened, or fails while in use.
pub(crate) fn command(flags: &CastJoinFlags) -> Result<()> {
    let doors = Doors::of_metrics(&flags.metrics)?;
    with_files_removed(&flags.user, doors.paths().collect(), || join(flags, &doors))
}

fn join(flags: &CastJoinFlags, doors: &Doors) -> Result<()> {
    let (sender, group) = addresses::channel(&flags.source, &flags.group)?;
    let channel =
        Channel::new(sender.ip(), group.ip()).map_err(|error| usage(error.to_string()))?;
    let sandbox = Sandbox::from_user_flags(&flags.user)?;
    let sockets = doors.bind()?;
    let stop = stop::on_request()?;
    let nic = open("--nic", &flags.nic)?;
    let host = open("--host", &flags.host)?;
    let connects = [&flags.nic, &flags.host].iter().any(|name| name.starts_with("virtio:"));
    let in_force = sandbox.confine(Confinement::worker().with_connections(connects))?;
    let mut bridge = Bridge::new(nic, host, Filter::new(sender, group), channel);
    let _read = serve_metrics(sockets, "rxo cast join", &counters::asked_at(bridge.desk.clone()))?;
    log::begin(Form::Plain, &flags.nic)?;
    warn_of_gaps(&in_force);
    let printer = Printer::start(1, |_| String::new(), Arc::clone(&stop))?;
    printer.line(format!("joining {channel} for connections to {sender}"));
    bridge.run(&stop)?;
    let counts = bridge.filter.counts;
    printer.line(format!(
        "{} segments to the group given to the receiver, {} outside its window, {} refused",
        grouped(counts.rewritten),
        grouped(counts.outside),
        grouped(counts.refused)
    ));
    printer.finish()
}

fn open(option: &'static str, name: &str) -> Result<Device> {
    let name: DeviceName = name.parse().context(option)?;
    let options = DeviceOptions { bring_up: true, ..DeviceOptions::default() };
    let device = Device::open(&name, options).context(option)?;
    if device.source.capabilities().link != LinkKind::Ethernet {
        return Err(usage(format!(
            "{option} {name}: frames of a group need an Ethernet; choose packet: or tap:"
        )));
    }
    Ok(device)
}

/// Two devices, the filter between them, and the membership.
struct Bridge {
    /// The network device, which must deliver no GSO frames, because the filter cannot rewrite them.
    nic: DeviceSource,
    nic_sink: DeviceSink,
    host: DeviceSource,
    host_sink: DeviceSink,
    filter: Filter,
    channel: Channel,
    /// The link that reports the membership on behalf of the receiver; `None` while no group is joined.
    member: Option<Link>,
    /// The desk at which requests for the counters are answered.
    desk: Desk<Reply<Value>>,
}

impl Bridge {
    fn new(nic: Device, host: Device, filter: Filter, channel: Channel) -> Self {
        Self {
            nic: on_wire(nic.source, false, None),
            nic_sink: nic.sink,
            host: host.source,
            host_sink: host.sink,
            filter,
            channel,
            member: None,
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
        let mut verdicts = Vec::with_capacity(frames.len());
        for frame in frames {
            self.on_query(frame, now);
            verdicts.push(self.filter.decide(frame.bytes(), now));
        }
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
            match self.filter.on_host_frame(frame.bytes(), now) {
                MembershipChange::Nothing => {}
                MembershipChange::Opens { receiver, mac } => self.join(receiver, mac, now)?,
                MembershipChange::Ends => {
                    if let Some(member) = &mut self.member {
                        member.leave(self.channel, now);
                    }
                }
            }
        }
        let frames: Vec<_> = frames.iter().map(Frame::borrowed).collect();
        Ok(self.nic_sink.send(&frames)?)
    }

    /// Joins the group on behalf of the receiver.
    fn join(&mut self, receiver: SocketAddr, mac: [u8; 6], now: Instant) -> Result<()> {
        let bits = if receiver.is_ipv4() { 32 } else { 128 };
        let address = IpCidr::new(receiver.ip(), bits).map_err(Error::new)?;
        let mut member = Link::new(LinkConfig::ethernet(mac, vec![address]))?;
        member.join(self.channel, now)?;
        self.member = Some(member);
        Ok(())
    }

    /// Answers a query about groups. All other frames are for the receiver's own link.
    fn on_query<B: AsRef<[u8]>>(&mut self, frame: &Frame<B>, now: Instant) {
        let bytes = frame.bytes();
        let is_query = parse(bytes).is_ok_and(|parsed| match parsed.transport {
            Transport::Other(PROTOCOL_IGMP) => true,
            Transport::Other(PROTOCOL_ICMPV6) => {
                bytes.get(parsed.at.transport as usize) == Some(&MLD_QUERY)
            }
            _ => false,
        });
        if let Some(member) = self.member.as_mut().filter(|_| is_query) {
            member.on_frame(frame, now);
        }
    }

    /// Sends the membership reports that are due.
    fn report(&mut self, now: Instant) -> Result<(), DeviceError> {
        let Some(member) = &mut self.member else { return Ok(()) };
        member.on_timeout(now);
        let reports: Vec<Vec<u8>> = std::iter::from_fn(|| member.poll_transmit()).collect();
        let reports: Vec<_> =
            reports.iter().map(|bytes| Frame::new(bytes.as_slice(), now)).collect();
        self.nic_sink.send(&reports)
    }

    fn wait(&self, now: Instant) -> Result<()> {
        let due = self.member.as_ref().and_then(Link::poll_at).map_or(LOOK, |at| at.since(now));
        let is_blocked = self.nic_sink.is_blocked() || self.host_sink.is_blocked();
        let timeout = if is_blocked { SHORT } else { due.min(LOOK) };
        let mut list = WaitList::new();
        list.add(Some(&self.nic), Interest::Readable);
        list.add(Some(&self.host), Interest::Readable);
        list.wait(Some(timeout))?;
        Ok(())
    }
}

/// Most frames taken from a device at once.
const BUDGET: usize = 256;
const MLD_QUERY: u8 = 130;
/// Pause between two checks of the stop flag.
const LOOK: Duration = Duration::from_millis(50);
/// Pause before sending to a full device again.
const SHORT: Duration = Duration::from_millis(1);
