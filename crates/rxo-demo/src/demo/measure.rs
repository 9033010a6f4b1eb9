//! Runs one measurement of the demo: builds the network for a path, runs the transfers, and removes the network.
//!
//! Each measurement has a new network, so that no path inherits cached TCP metrics from an earlier
//! connection.

use anyhow::Result;
use rxo_coalesce::Counters;
use rxo_testbed::traffic::PingPongReport;
use rxo_testbed::{KernelGro, Lab, LabOptions};

use super::floor;
use super::manner;
use super::path::Path;
use super::plan::Plan;
use super::sample::{HoldTime, Sample};
use super::transfer::{Bulk, bulk, request_response};
use crate::losses::Losses;
use crate::through::{self, Manner};

/// Measures `path` once. Returns the sample.
///
/// # Errors
/// If the network cannot be built, a device cannot be opened, or a transfer breaks.
pub(super) fn measure(path: Path, plan: &Plan) -> Result<Sample> {
    match (manner::of(path), path) {
        (Some(manner), _) => through_rxo(manner, plan),
        (None, Path::Floor) => through_floor(plan),
        (None, Path::KernelGroOff) => through_kernel(KernelGro::Off, plan),
        (None, _) => through_kernel(KernelGro::On, plan),
    }
}

fn through_kernel(gro: KernelGro, plan: &Plan) -> Result<Sample> {
    let lab = Lab::direct_with(gro, wire(plan))?;
    let bulk = bulk(&lab, Lab::HOST_INTERFACE, plan)?;
    let exchange = request_response(&lab, plan)?;
    let segments_per_aggregate = bulk.packets as f64 / bulk.deliveries.max(1) as f64;
    Ok(Sample { segments_per_aggregate, ..sample(&bulk, &exchange) })
}

fn through_rxo(manner: Manner, plan: &Plan) -> Result<Sample> {
    let core = plan.cores.receiver;
    let lab = Lab::through_with(wire(plan))?;
    let through = through::start(&lab, manner, core)?;
    let bulk = bulk(&lab, Lab::WIRE_INTERFACE, plan)?;
    let totals = through.finish()?;
    drop(lab);
    // A new worker with the same settings, so that hold times of single bytes do not mix with those of the
    // bulk transfer. It needs a new network too: the new TAP has another MAC address, which the first peer
    // would have to resolve again.
    let lab = Lab::through_with(wire(plan))?;
    let through = through::start(&lab, manner, core)?;
    let exchange = request_response(&lab, plan)?;
    let exchange_totals = through.finish()?;
    Ok(Sample {
        // If no frame was a candidate, each frame is its own delivery.
        segments_per_aggregate: totals.engine.segments_per_aggregate.mean().max(1.0),
        hold_us: hold_time(&totals.engine),
        losses: Losses {
            ring_drops: totals.nic_in.ring_drops + exchange_totals.nic_in.ring_drops,
            sink_drops: totals.host_out.dropped + exchange_totals.host_out.dropped,
            ..bulk.losses
        },
        ..sample(&bulk, &exchange)
    })
}

fn through_floor(plan: &Plan) -> Result<Sample> {
    let lab = Lab::through_with(wire(plan))?;
    let floor = floor::start(&lab, plan.cores.receiver)?;
    let bulk = bulk(&lab, Lab::WIRE_INTERFACE, plan)?;
    let totals = floor.finish()?;
    drop(lab);
    // A new network for the second transfer, as for rxo.
    let lab = Lab::through_with(wire(plan))?;
    let _floor = floor::start(&lab, plan.cores.receiver)?;
    let exchange = request_response(&lab, plan)?;
    Ok(Sample {
        segments_per_aggregate: totals.frames as f64 / totals.writes.max(1) as f64,
        losses: Losses { ring_drops: totals.ring_drops, ..bulk.losses },
        ..sample(&bulk, &exchange)
    })
}

/// Returns the options of the wire, which do not depend on the path. The peer's kernel processes ACKs on the
/// core from which the peer sends.
fn wire(plan: &Plan) -> LabOptions {
    LabOptions { peer_core: plan.cores.sender, ..LabOptions::default() }
}

fn hold_time(engine: &Counters) -> Option<HoldTime> {
    let us = |share| engine.hold_ns.quantile(share) as f64 / 1_000.0;
    (engine.hold_ns.count() > 0).then(|| HoldTime { p50: us(0.5), p99: us(0.99) })
}

/// Returns a sample with the figures that are measured on every path; the other fields get defaults, which the
/// caller replaces.
fn sample(bulk: &Bulk, exchange: &PingPongReport) -> Sample {
    Sample {
        gbit_per_s: bulk.gbit_per_s,
        cpu_s_per_gb: bulk.cpu_s_per_gb,
        deliveries_per_1000_packets: bulk.deliveries_per_1000_packets(),
        segments_per_aggregate: 1.0,
        hold_us: None,
        rr_per_s: exchange.per_s(),
        rr_p50_us: exchange.quantile_us(0.5),
        cpu_parts: bulk.cpu_parts,
        losses: bulk.losses,
        hash_ok: bulk.hash_ok,
    }
}
