//! The traffic of a round: short connections, bulk and datagrams in both directions, and requests.

use std::net::{IpAddr, SocketAddr};
use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use anyhow::{Context, Result, ensure};
use rxo_peers::{DatagramFlow, DatagramReport};
use rxo_testbed::traffic::{BulkConfig, BulkReport, BulkTransfer};
use rxo_testbed::{Lab, Namespace};
use serde::Serialize;

use crate::downloads::{Clients, Load};

/// Traffic carried so far, with each byte checked.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Carried {
    /// Connections that were opened, used and closed, without those of requests.
    pub(super) connections: u64,
    /// Bytes of short connections and of bulk transfers.
    pub(super) tcp_bytes: u64,
    /// Datagrams for the host.
    #[serde(serialize_with = "datagrams")]
    pub(super) to_host: DatagramReport,
    /// Datagrams for the peer.
    #[serde(serialize_with = "datagrams")]
    pub(super) to_peer: DatagramReport,
    /// Files downloaded completely by HTTP; the next field has their bytes.
    pub(super) requests: u64,
    pub(super) request_bytes: u64,
    /// Answers received over control sockets.
    pub(super) questions: u64,
    /// Requests that a worker did not answer within rxo's own limit, and that were repeated.
    pub(super) late_answers: u64,
}

fn datagrams<S: serde::Serializer>(of: &DatagramReport, to: S) -> Result<S::Ok, S::Error> {
    let DatagramReport { sent, received, repeated, late, wrong } = *of;
    to.collect_map([
        ("sent", sent),
        ("received", received),
        ("repeated", repeated),
        ("late", late),
        ("wrong", wrong),
    ])
}

impl AddAssign for Carried {
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.tcp_bytes += other.tcp_bytes;
        self.requests += other.requests;
        self.request_bytes += other.request_bytes;
        self.questions += other.questions;
        self.late_answers += other.late_answers;
        for (sum, of) in [(&mut self.to_host, other.to_host), (&mut self.to_peer, other.to_peer)] {
            sum.sent += of.sent;
            sum.received += of.received;
            sum.repeated += of.repeated;
            sum.late += of.late;
            sum.wrong += of.wrong;
        }
    }
}

impl Carried {
    fn add(&mut self, report: &BulkReport) -> Result<()> {
        if let Some(wrong) = &report.mismatch {
            anyhow::bail!("{wrong}");
        }
        let (sent, received) = (report.sent_bytes, report.received_bytes);
        ensure!(sent == received, "of {sent} bytes {received} arrived");
        self.connections += report.connections as u64;
        self.tcp_bytes += received;
        Ok(())
    }
}

/// The running traffic of a round. Dropping this ends it.
pub(super) struct Traffic {
    bulk: [BulkTransfer; 2],
    datagrams: [DatagramFlow; 2],
    clients: Clients,
}

/// A direction: the connecting namespace, the accepting namespace, and its address.
type Way<'a> = (&'a Namespace, &'a Namespace, IpAddr);

fn ways(lab: &Lab) -> [Way<'_>; 2] {
    let (host, peer) = (lab.host(), lab.peer());
    [(peer, host, lab.host_address()), (host, peer, lab.peer_address())]
}

impl Traffic {
    /// Starts the traffic, and clients of `server` at the host.
    pub(super) fn start(lab: &Lab, server: SocketAddr, load: Load) -> Result<Self> {
        let [to_host, to_peer] = ways(lab);
        let bulk = |(from, to, address): Way<'_>| {
            let config = BulkConfig {
                connections: BULK_CONNECTIONS,
                limit_bytes_per_s: Some(BULK_BYTES_PER_S),
                ..BulkConfig::default()
            };
            BulkTransfer::start(from, to, address, &config)
        };
        let datagrams =
            |(from, to, address): Way<'_>| DatagramFlow::start(from, to, address, DATAGRAMS_PER_MS);
        Ok(Self {
            bulk: [bulk(to_host)?, bulk(to_peer)?],
            datagrams: [datagrams(to_host)?, datagrams(to_peer)?],
            clients: Clients::start(lab.host(), server, load)?,
        })
    }

    /// Fails if a client received wrong bytes.
    pub(super) fn check(&self) -> Result<()> {
        self.clients.progress().map(|_| ())
    }

    /// Ends all traffic except the datagram receivers, because datagrams may still be in flight.
    pub(super) fn stop(self, carried: &mut Carried) -> Result<[DatagramFlow; 2]> {
        self.datagrams.iter().for_each(DatagramFlow::stop_sending);
        let progress = self.clients.finish()?;
        carried.requests += progress.files;
        carried.request_bytes += progress.bytes;
        for transfer in self.bulk {
            carried.add(&transfer.stop()?).context("bulk")?;
        }
        Ok(self.datagrams)
    }
}

/// Runs `work` while short connections are opened in both directions, and ends them afterwards.
///
/// # Errors
/// The error of `work`; or if a short connection broke or delivered wrong bytes.
pub(super) fn beside_churn<T>(
    lab: &Lab,
    carried: &mut Carried,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        let threads = ways(lab).map(|way| scope.spawn(move || churn(way, stop)));
        let done = work();
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            *carried += joined(thread).context("short connections")?;
        }
        done
    })
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn churn((from, to, address): Way<'_>, stop: &AtomicBool) -> Result<Carried> {
    let mut carried = Carried::default();
    while !stop.load(Ordering::Relaxed) {
        let config = BulkConfig {
            connections: SHORT_CONNECTIONS,
            bytes_per_connection: Some(SHORT_BYTES),
            ..BulkConfig::default()
        };
        carried.add(&BulkTransfer::start(from, to, address, &config)?.wait()?)?;
        thread::sleep(PAUSE);
    }
    Ok(carried)
}

/// Bulk connections in each direction.
const BULK_CONNECTIONS: usize = 4;
/// Bulk rate, below the capacity of a machine with two cores, so that all kinds of traffic make progress.
const BULK_BYTES_PER_S: u64 = 25_000_000;
const DATAGRAMS_PER_MS: u32 = 2;
const SHORT_CONNECTIONS: usize = 10;
const SHORT_BYTES: u64 = 20_000;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(5);
