//! Runs one connection from a sender to a receiver, and observes it while it sends.

use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rxo_peers::{CountingConfig, CountingTransfer};
use rxo_testbed::traffic::{BulkConfig, BulkTransfer, WindowPoint};
use rxo_testbed::{CpuMeter, CpuUse, Interface};

use super::plan::Plan;
use super::sender::Sender;

/// The two ends of a connection.
pub(super) struct Route<'a, 'n> {
    pub(super) from: &'a Interface<'n>,
    pub(super) to: &'a Interface<'n>,
    pub(super) address: Ipv4Addr,
    /// Cores of the sending and of the receiving thread.
    pub(super) cores: [Option<usize>; 2],
}

/// The observations of one connection.
pub(super) struct Watched {
    /// Bytes delivered over time.
    pub(super) arrived: Vec<WindowPoint>,
    /// The sender's congestion window over time.
    pub(super) windows: Vec<WindowPoint>,
    pub(super) retransmissions: u64,
    /// Processor time of this whole process and of `ksoftirqd` while the connection sent.
    pub(super) cpu: CpuUse,
    /// Payload bytes that arrived in that time.
    pub(super) received_bytes: u64,
}

enum Transfer {
    Kernel(BulkTransfer),
    Counting(CountingTransfer),
}

/// Runs a connection for the plan's time, and observes it.
///
/// # Errors
/// If the connection cannot be opened or breaks, or wrong bytes arrive.
pub(super) fn watch(sender: Sender, route: &Route<'_, '_>, plan: &Plan) -> Result<Watched> {
    let meter = CpuMeter::new();
    let (before, transfer) = (meter.read()?, Transfer::start(sender, route)?);
    let begin = Instant::now();
    let mut arrived = Vec::new();
    while begin.elapsed() < plan.effort.duration {
        thread::sleep(BETWEEN_POINTS);
        arrived.push(transfer.point(begin)?);
    }
    let cpu = meter.read()?.since(&before);
    let received_bytes = arrived.last().map_or(0, |point| point.delivered_bytes);
    let (windows, retransmissions) = transfer.stop()?;
    let windows = windows.unwrap_or_else(|| arrived.clone());
    Ok(Watched { arrived, windows, retransmissions, cpu, received_bytes })
}

impl Transfer {
    fn start(sender: Sender, route: &Route<'_, '_>) -> Result<Self> {
        let Route { from, to, address, cores: [sender_core, receiver_core] } = *route;
        let receive_low_water_bytes = Some(LOW_WATER_BYTES);
        let Some(name) = sender.congestion_control() else {
            let config = CountingConfig {
                receive_low_water_bytes,
                sender_core,
                receiver_core,
                ..CountingConfig::default()
            };
            return Ok(Self::Counting(CountingTransfer::start(from, to, address, config)?));
        };
        let config = BulkConfig {
            congestion_control: Some(name),
            receive_low_water_bytes,
            sender_core,
            receiver_core,
            ..BulkConfig::default()
        };
        let (from, to) = (from.namespace(), to.namespace());
        Ok(Self::Kernel(BulkTransfer::start(from, to, address.into(), &config)?))
    }

    fn point(&self, begin: Instant) -> Result<WindowPoint> {
        let (at, cwnd_bytes) = (begin.elapsed(), 0);
        Ok(match self {
            Self::Kernel(transfer) => WindowPoint { at, ..transfer.window()? },
            Self::Counting(transfer) => {
                WindowPoint { at, cwnd_bytes, delivered_bytes: transfer.received_bytes() }
            }
        })
    }

    /// Stops the sender. Returns its own record of its window, if it keeps one, and the number of
    /// retransmitted segments.
    fn stop(self) -> Result<(Option<Vec<WindowPoint>>, u64)> {
        let (mismatch, record, retransmissions) = match self {
            Self::Kernel(transfer) => {
                let report = transfer.stop()?;
                (report.mismatch, None, report.retransmitted_segments)
            }
            Self::Counting(transfer) => {
                let report = transfer.stop()?;
                (report.mismatch, Some(report.record), report.counters.retransmissions)
            }
        };
        if let Some(mismatch) = mismatch {
            bail!("{mismatch}; please report this");
        }
        Ok((record, retransmissions))
    }
}

/// Receive low-water mark. It makes Linux acknowledge every second segment, as RFC 9293 requires, instead of
/// waiting for a slow reader; 2 ms of data at 1 Gbit/s.
const LOW_WATER_BYTES: usize = 256 * 1024;
const BETWEEN_POINTS: Duration = Duration::from_millis(5);
