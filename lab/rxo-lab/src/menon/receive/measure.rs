//! Runs one measurement: builds the network, starts the host and Linux senders, measures, and removes all.

use std::thread;
use std::time::Instant;

use anyhow::Result;
use rxo_console::numbers::ratio;
use rxo_host::HostCounters;
use rxo_testbed::traffic::{BulkConfig, Outgoing, PingPongConfig, exchange};
use rxo_testbed::{CpuMeter, CpuUse, InterfaceCounters, Lab, LabOptions};
use serde::Serialize;

use super::station::{Service, Station};
use super::{Case, Setting, Stack, stages};
use crate::counted::Costs;

/// A bulk transfer, during the measured time.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Bulk {
    gbit_per_s: f64,
    /// Payload received per second of the receiving host's processor time (worker and applications), in Gbit:
    /// the paper's CPU-scaled throughput.
    scaled_gbit_per_s: f64,
    /// Processor time of worker and applications per data frame.
    ns_per_packet: f64,
    /// Share of a core that worker and applications used.
    core_percent: f64,
    packets_per_delivery: f64,
    acks_per_packet: f64,
    /// Nanoseconds per packet, by category; `None` if no turn was timed.
    breakdown_ns: Option<Costs>,
    /// Segments that the senders retransmitted.
    retransmissions: u64,
    /// Frames dropped because the ring was full.
    ring_drops: u64,
}

/// An exchange of single bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Exchange {
    per_s: f64,
    p50_us: f64,
}

/// Measures bulk receiving in `case`.
pub(super) fn bulk(case: Case, setting: Setting) -> Result<Bulk> {
    let lab = Lab::through_with(wire(setting))?;
    let station = Station::start(&lab, case, Service::Read, setting.cores.receiver)?;
    let config = BulkConfig {
        connections: case.connections,
        sender_core: setting.cores.sender,
        ..BulkConfig::default()
    };
    let outgoing = Outgoing::start(lab.peer(), station.address(), &config)?;
    let meter = CpuMeter::new()
        .threads(WORKER, vec![station.worker_thread])
        .threads(APPLICATION, station.threads(case.connections)?);
    thread::sleep(setting.warm_up);
    station.set_measured(true);
    let before = Reading::now(&lab, &station, &meter)?;
    thread::sleep(setting.effort.duration);
    let after = Reading::now(&lab, &station, &meter)?;
    station.set_measured(false);
    let sent = outgoing.stop()?;
    station.finish(&sent)?;
    Ok(Bulk { retransmissions: sent.retransmitted_segments, ..after.since(&before) })
}

/// Measures the exchange of single bytes with `stack`.
pub(super) fn request_response(stack: Stack, setting: Setting) -> Result<Exchange> {
    let lab = Lab::through_with(wire(setting))?;
    let station =
        Station::start(&lab, Case::wire(1, stack), Service::Echo, setting.cores.receiver)?;
    let config = PingPongConfig {
        duration: setting.effort.duration,
        client_core: setting.cores.sender,
        server_core: None,
    };
    let report = exchange(lab.peer(), station.address(), config)?;
    station.stop()?;
    Ok(Exchange { per_s: report.per_s(), p50_us: report.quantile_us(0.5) })
}

/// Returns the options of the wire. ACKs are processed on the sender's core, as if a card's interrupt were
/// bound to it.
fn wire(setting: Setting) -> LabOptions {
    LabOptions { peer_core: setting.cores.sender, ..LabOptions::default() }
}

/// All counters and processor times at one instant.
struct Reading {
    at: Instant,
    bytes: u64,
    wire: InterfaceCounters,
    host: HostCounters,
    cpu: rxo_testbed::CpuReading,
}

impl Reading {
    fn now(lab: &Lab, station: &Station, meter: &CpuMeter) -> Result<Self> {
        Ok(Self {
            wire: lab.host().interface(Lab::WIRE_INTERFACE).counters()?,
            host: station.counters()?,
            cpu: meter.read()?,
            bytes: station.received_bytes(),
            at: Instant::now(),
        })
    }

    fn since(&self, before: &Self) -> Bulk {
        let cpu = self.cpu.since(&before.cpu);
        let packets = self.wire.received_frames - before.wire.received_frames;
        let deliveries = self.host.deliveries - before.host.deliveries;
        let acks = self.wire.sent_frames - before.wire.sent_frames;
        let seconds = (self.at - before.at).as_secs_f64();
        let gigabits = (self.bytes - before.bytes) as f64 * 8.0 / 1e9;
        let [worker_s, application_s] = [WORKER, APPLICATION].map(|part| seconds_of(&cpu, part));
        let cpu_s = worker_s + application_s;
        Bulk {
            gbit_per_s: gigabits / seconds,
            scaled_gbit_per_s: ratio(gigabits, cpu_s),
            ns_per_packet: ratio(cpu_s * 1e9, packets as f64),
            core_percent: 100.0 * ratio(cpu_s, seconds),
            packets_per_delivery: ratio(packets as f64, deliveries as f64),
            acks_per_packet: ratio(acks as f64, packets as f64),
            breakdown_ns: stages::breakdown(
                &self.host.stages.since(&before.host.stages),
                [worker_s, application_s],
                packets,
            ),
            retransmissions: 0,
            ring_drops: self.host.source.ring_drops - before.host.source.ring_drops,
        }
    }
}

fn seconds_of(cpu: &CpuUse, part: &str) -> f64 {
    cpu.part(part).unwrap_or_default().as_secs_f64()
}

const WORKER: &str = "worker";
const APPLICATION: &str = "application";
