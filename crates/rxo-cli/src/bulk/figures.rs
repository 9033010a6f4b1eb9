//! The figures of an interval or of a whole transfer, as they are written in JSON.

use std::time::Duration;

use hdrhistogram::Histogram;
use rxo::live::host::HostReading;
use rxo_host::HostCounters;
use serde::Serialize;

use super::meter::{Count, Reading};
use super::session::Done;
use crate::hosting::FastTotals;
use crate::numbers::{gbit_per_s, ratio, rounded};

/// The figures of an interval, or of the whole time since the first connection opened.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figures {
    /// The kind of this object: "interval" or "totals".
    pub(super) kind: &'static str,
    /// Time from the opening of the first connection to the end of the interval, in seconds.
    pub(super) elapsed_s: f64,
    /// Length of the interval, in seconds.
    pub(super) seconds: f64,
    /// Payload bytes of all connections: received by `rxo sink`, sent by `rxo source`, or received in responses.
    pub(super) bytes: u64,
    pub(super) gbit_per_s: f64,
    /// Processor time of the whole process, in seconds.
    pub(super) cpu_s: f64,
    /// Processor time in seconds per 10^9 payload bytes; `None` if no bytes were transferred.
    pub(super) cpu_s_per_gb: Option<f64>,
    /// Number of requests that were answered; for `rxo sink`, the number of echoes that it sent.
    pub(super) exchanges: u64,
    pub(super) exchanges_per_s: f64,
    /// Number of connections that ended. This field and the following ones appear in totals only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) connections: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) frames: Option<Frames>,
    /// Totals of the host's fast path; `None` if the fast path was never on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fast_path: Option<FastTotals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) round_trips: Option<RoundTrips>,
    /// The byte count and hash of each connection; empty without `--hash`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ends: Vec<Ends>,
    /// The figures of each worker; empty if the host has one worker.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) workers: Vec<WorkerFigures>,
}

/// The figures of one worker of the host.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WorkerFigures {
    /// The worker's number, from 1 on.
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) gbit_per_s: f64,
    pub(super) exchanges: u64,
    /// The figures of the worker that appear only in totals; left out of intervals.
    #[serde(flatten)]
    pub(super) totals: Option<WorkerTotals>,
}

/// The totals of a worker at its end.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WorkerTotals {
    /// Number of connections of the worker that ended.
    pub(super) connections: usize,
    /// The processor time of the host's thread of this worker, in seconds.
    pub(super) cpu_s: f64,
    /// Number of deliveries that reached this worker but are for connections of other workers.
    pub(super) misplaced: u64,
    pub(super) frames: Frames,
}

/// Counters of the frames at the network device.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Frames {
    /// Number of frames received from the device.
    pub(super) received: u64,
    /// Number of deliveries into which the received frames were coalesced.
    pub(super) deliveries: u64,
    /// Ratio of received frames to deliveries.
    pub(super) per_delivery: f64,
    /// Number of frames sent; a GSO frame counts as its segments. For `rxo sink` these frames are ACKs.
    pub(super) sent: u64,
    /// Number of received frames that the device dropped because its ring was full.
    pub(super) lost: u64,
}

/// Percentiles and maximum of the time from a request to its response, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct RoundTrips {
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) p999_us: f64,
    pub(super) max_us: f64,
}

/// Byte count and hash of one connection, to be compared with the peer's byte count and hash.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Ends {
    pub(super) peer: String,
    pub(super) bytes: u64,
    /// The CRC-32 of the connection's bytes, as eight hexadecimal digits.
    pub(super) crc32: String,
}

impl Figures {
    /// Computes the figures of the time between the readings `from` and `to`.
    pub(super) fn between(
        kind: &'static str,
        begun: &Reading,
        from: &Reading,
        to: &Reading,
    ) -> Self {
        let time = to.moment.at.saturating_duration_since(from.moment.at);
        let seconds = time.as_secs_f64();
        let Count { bytes, exchanges } = to.sum().since(from.sum());
        let cpu_s = to.moment.cpu.saturating_sub(from.moment.cpu).as_secs_f64();
        let since_begun = to.moment.at.saturating_duration_since(begun.moment.at);
        let workers = from.workers.iter().zip(&to.workers).enumerate();
        let workers = workers.filter(|_| to.workers.len() > 1);
        let per_gb = (bytes > 0).then(|| rounded(ratio(cpu_s, bytes as f64 / 1e9), 3));
        Self {
            kind,
            elapsed_s: rounded(since_begun.as_secs_f64(), 3),
            seconds: rounded(seconds, 3),
            bytes,
            gbit_per_s: rounded(gbit_per_s(bytes, time), 3),
            cpu_s: rounded(cpu_s, 3),
            cpu_s_per_gb: per_gb,
            exchanges,
            exchanges_per_s: rounded(ratio(exchanges as f64, seconds), 1),
            connections: None,
            frames: None,
            fast_path: None,
            round_trips: None,
            ends: Vec::new(),
            workers: workers
                .map(|(n, (from, to))| WorkerFigures::new(n + 1, to.since(*from), time))
                .collect(),
        }
    }
}

impl WorkerFigures {
    fn new(number: usize, Count { bytes, exchanges }: Count, time: Duration) -> Self {
        let gbit_per_s = rounded(gbit_per_s(bytes, time), 3);
        Self { name: number.to_string(), bytes, gbit_per_s, exchanges, totals: None }
    }
}

impl WorkerTotals {
    /// Returns the totals of a worker. `connections` is the number of its connections that ended.
    pub(super) fn new(connections: usize, of: &HostReading) -> Self {
        Self {
            connections,
            cpu_s: rounded(of.cpu.as_secs_f64(), 3),
            misplaced: of.counters.tcp.misplaced,
            frames: Frames::of(&of.counters),
        }
    }
}

impl Frames {
    pub(super) fn of(counters: &HostCounters) -> Self {
        let received = counters.source.frames;
        let deliveries = counters.deliveries;
        Self {
            received,
            deliveries,
            per_delivery: rounded(ratio(received as f64, deliveries as f64), 2),
            sent: counters.sink.frames,
            lost: counters.source.ring_drops,
        }
    }
}

impl RoundTrips {
    pub(super) fn of(nanos: &Histogram<u64>) -> Self {
        let us = |quantile: f64| rounded(nanos.value_at_quantile(quantile) as f64 / 1e3, 1);
        Self { p50_us: us(0.5), p99_us: us(0.99), p999_us: us(0.999), max_us: us(1.0) }
    }
}

impl Ends {
    /// Returns the byte count and hash of a connection that has ended; `None` without `--hash`.
    pub(super) fn of(done: &Done) -> Option<Self> {
        let crc32 = format!("{:08x}", done.crc32?);
        Some(Self { peer: done.peer.to_string(), bytes: done.bytes, crc32 })
    }
}
