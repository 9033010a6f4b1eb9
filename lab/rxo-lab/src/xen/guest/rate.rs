//! Measures the throughput of the paper's machine: the rate of a bulk transfer into a live guest.

use anyhow::{Result, ensure};
use rxo_peers::GuestImage;
use serde::Serialize;

use crate::guests::machine::Machine;
use crate::guests::transfer;
use crate::xen::domain::packets_an_aggregate;
use crate::xen::system::System;

/// Rate of a transfer with everything except the card and the sender on one core.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct GuestRate {
    pub(crate) mbit_per_s: f64,
    /// Packets on the wire per delivery of the driver domain.
    pub(crate) packets_an_aggregate: f64,
}

/// Sends a quarter of `bytes` bytes to a guest, then all of them; the difference gives the rate. Polls are
/// those of `rxo guest`.
pub(crate) fn measure(system: System, bytes: usize) -> Result<GuestRate> {
    let mut machine = Machine::start(&GuestImage::find()?, system.treatment())?;
    let (guest, peer) = machine.ends();
    let few = bytes / 4;
    let short = transfer(guest, peer, 0, few)?;
    let long = transfer(guest, peer, 0, bytes)?;
    let engine = machine.finish()?;
    let packets_an_aggregate = engine.as_ref().and_then(packets_an_aggregate).unwrap_or(1.0);
    let more = long.saturating_sub(short).as_secs_f64();
    ensure!(more > 0.0, "{bytes} bytes took no longer than {few}");
    let mbit_per_s = (bytes - few) as f64 * 8.0 / 1e6 / more;
    Ok(GuestRate { mbit_per_s, packets_an_aggregate })
}
