//! Runs one measurement: builds the network, starts the host and Linux senders, measures, and removes all.

use std::thread;
use std::time::Instant;

use anyhow::Result;
use rxo_host::HostCounters;
use rxo_testbed::traffic::{BulkConfig, Outgoing, PingPongConfig, exchange};
use rxo_testbed::{CpuMeter, CpuUse, InterfaceCounters, Lab, LabOptions};

use super::plan::Plan;
use super::sample::{Bulk, Exchange};
use super::stack::{Case, Stack};
use super::stages;
use super::station::{Service, Station};

/// Measures bulk receiving in `case`.
///
/// # Errors
/// If the network cannot be built, a connection breaks, or data is lost.
pub(super) fn bulk(case: Case, plan: &Plan) -> Result<Bulk> {
    let lab = Lab::through_with(wire(plan))?;
    let station = Station::start(&lab, case, Service::Read, plan.cores.receiver)?;
    let config = BulkConfig {
        connections: case.connections,
        sender_core: plan.cores.sender,
        ..BulkConfig::default()
    };
    let outgoing = Outgoing::start(lab.peer(), station.address(), &config)?;
    let meter = CpuMeter::new()
        .threads(WORKER, vec![station.worker.thread_id])
        .threads(APPLICATION, station.threads(case.connections)?);
    thread::sleep(plan.warm_up);
    station.set_measured(true);
    let before = Reading::now(&lab, &station, &meter)?;
    thread::sleep(plan.effort.duration);
    let after = Reading::now(&lab, &station, &meter)?;
    station.set_measured(false);
    let sent = outgoing.stop()?;
    station.finish(&sent)?;
    Ok(Bulk { retransmissions: sent.retransmitted_segments, ..after.since(&before) })
}

/// Measures the exchange of single bytes with `stack`.
///
/// # Errors
/// If the network cannot be built or the connection breaks.
pub(super) fn request_response(stack: Stack, plan: &Plan) -> Result<Exchange> {
    let lab = Lab::through_with(wire(plan))?;
    let station = Station::start(&lab, Case::wire(1, stack), Service::Echo, plan.cores.receiver)?;
    let config = PingPongConfig {
        duration: plan.effort.duration,
        client_core: plan.cores.sender,
        server_core: None,
    };
    let report = exchange(lab.peer(), station.address(), config)?;
    station.worker.finish()?;
    Ok(Exchange { per_s: report.per_s(), p50_us: report.quantile_us(0.5) })
}

/// Returns the options of the wire. ACKs are processed on the sender's core, as if a card's interrupt were
/// bound to it.
fn wire(plan: &Plan) -> LabOptions {
    LabOptions { peer_core: plan.cores.sender, ..LabOptions::default() }
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
            host: station.worker.counters()?,
            cpu: meter.read()?,
            bytes: station.received_bytes(),
            at: Instant::now(),
        })
    }

    fn since(&self, before: &Self) -> Bulk {
        let cpu = self.cpu.since(&before.cpu);
        let packets = self.wire.received_frames - before.wire.received_frames;
        let [worker_s, application_s] = [WORKER, APPLICATION].map(|part| seconds(&cpu, part));
        Bulk {
            seconds: (self.at - before.at).as_secs_f64(),
            bytes: self.bytes - before.bytes,
            packets,
            deliveries: self.host.deliveries - before.host.deliveries,
            acks: self.wire.sent_frames - before.wire.sent_frames,
            worker_s,
            application_s,
            breakdown: stages::breakdown(
                &self.host.stages.since(&before.host.stages),
                [worker_s, application_s],
                packets,
            ),
            retransmissions: 0,
            ring_drops: self.host.source.ring_drops - before.host.source.ring_drops,
        }
    }
}

fn seconds(cpu: &CpuUse, part: &str) -> f64 {
    cpu.part(part).unwrap_or_default().as_secs_f64()
}

const WORKER: &str = "worker";
const APPLICATION: &str = "application";
