//! Figures of an interval or of a whole run, as data that can be serialized and as text.
//!
//! [`Readings`] are counters of a worker or of several guests' workers. [`Figures`] are computed from two of
//! them: rates, ratios, losses, reasons. `HostFigures` and `ConnectionFigures` (feature `host`) describe a
//! host with its own TCP, and one of its connections. This module is separate from the worker, which only
//! counts.
//!
//! # Examples
//! ```
//! use rxo::figures::{Figures, Readings};
//!
//! let (then, now) = (Readings::default(), Readings::default());
//! let figures = Figures::between(&then, &now, &[]);
//! assert!(figures.text().contains("in 0 pkt"));
//! ```

mod coalescing;
#[cfg(feature = "host")]
mod connection;
#[cfg(feature = "host")]
mod host;
mod split;
mod switching;
mod text;
mod workers;

use std::collections::BTreeMap;
use std::time::Duration;

use rxo_coalesce::{BypassReason, Counters, FlushReason};
use rxo_console::numbers::{gbit_per_s, ratio, rounded};
use rxo_device::middleware::ImpairmentCounters;
use rxo_device::{SinkCounters, SourceCounters};
use serde::Serialize;

pub use coalescing::Switched;
#[cfg(feature = "host")]
pub use connection::ConnectionFigures;
#[cfg(feature = "host")]
pub use host::{HostFigures, HostWorkerFigures};
pub use split::Split;
pub use switching::Switching;
pub use workers::WorkerFigures;

use crate::Reading;
pub use crate::worker::Readings;

/// The figures of one interval, or of the whole run so far.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// The kind of these figures: "interval" for one interval, "totals" for the whole run.
    pub kind: &'static str,
    /// Seconds from the start to the end of the interval.
    pub elapsed_s: f64,
    /// The length of the interval, in seconds.
    pub interval_s: f64,
    /// Counters of the frames that rxo received from the device.
    pub nic_in: Incoming,
    /// Number of frames from the device that were dropped because more arrived than could be processed.
    pub overload: u64,
    /// Number of frames that the device's ring lost while rxo was not scheduled, because other processes used
    /// its core. The ring drops of `nic_in` include these frames.
    pub not_scheduled: u64,
    /// Number of frames that arrived at the device by the system's count, but that rxo counts neither as
    /// received nor as lost.
    pub unaccounted: u64,
    /// Number of packets that were written to the device, but that the system counts neither as sent nor as
    /// dropped.
    pub unsent: u64,
    /// Frames by which the counters of rxo's own stages disagree, by stage; all zero unless rxo has a bug.
    pub imbalance: BTreeMap<&'static str, u64>,
    /// Counters of the packets that rxo sent to the host.
    pub host_out: Outgoing,
    /// The state of coalescing; left out unless it may be off (`--coalesce`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coalescing: Option<Switched>,
    /// Average number of coalescable segments per delivery.
    pub packets_per_aggregate: f64,
    /// Counters of pure ACKs among the frames from the device.
    pub acks: PureAcks,
    /// The results of `--ack-split`; left out without this flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_split: Option<Split>,
    /// Counters of the packets that rxo received from the host.
    pub host_in: Incoming,
    /// Counters of the packets that rxo sent to the device.
    pub nic_out: Outgoing,
    /// Impairments by `--impair`, by kind; left out without this flag.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub impaired: BTreeMap<&'static str, u64>,
    /// Impairments by `--impair-back`, by kind; left out without this flag.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub impaired_back: BTreeMap<&'static str, u64>,
    /// Changes that a simulated network card made to frames for the host, by kind; left out by `rxo run`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wire: BTreeMap<&'static str, u64>,
    /// Changes that a simulated network card made to frames from the host, by kind; left out by `rxo run`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wire_back: BTreeMap<&'static str, u64>,
    /// The processor time of the worker's thread in seconds, user and system together.
    pub cpu_s: f64,
    /// The worker's share of one core, in percent.
    pub cpu_percent: f64,
    /// Frames that were not coalesced, by reason; reasons that did not occur are left out.
    pub bypass: BTreeMap<&'static str, u64>,
    /// Deliveries of held packets, by reason; reasons that did not occur are left out.
    pub flush: BTreeMap<&'static str, u64>,
    /// The figures of the switch between the nic and the guests; left out without a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<Switching>,
    /// The figures of each guest; left out without guests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestFigures>,
    /// The figures of each worker; left out if there is only one worker.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerFigures>,
}

/// The figures of one guest.
#[derive(Clone, Debug, Serialize)]
pub struct GuestFigures {
    /// The guest's name.
    pub name: String,
    /// Number of frames for the guest, including those that were lost.
    pub frames: u64,
    /// Number of packets that the guest received; an aggregate counts as one.
    pub deliveries: u64,
    /// Number of bytes of the packets that the guest received.
    pub bytes: u64,
    /// Number of bytes copied into the guest's memory; a byte copied twice counts twice.
    pub bytes_copied: u64,
    /// The average number of times that each byte was copied.
    pub copies: f64,
    /// Number of bytes that were copied to other memory than the guest's: each frame once between the nic's
    /// thread and the guest's thread, and each frame that waits for free space.
    pub bytes_copied_aside: u64,
    /// The average number of separate pieces of memory (buffers) per packet.
    pub pieces: f64,
    /// Average number of coalescable segments per delivery to the guest.
    pub packets_per_aggregate: f64,
    /// The median of the time for which the first segment of a delivery was held, in microseconds.
    pub hold_p50_us: f64,
    /// The 99th percentile of the hold time of a delivery's first segment, in microseconds.
    pub hold_p99_us: f64,
    /// Number of frames for the guest that were lost because the guest did not read them.
    pub dropped: u64,
    /// Number of packets that the guest sent.
    pub sent: u64,
    /// Number of frames from the guest that the switch dropped.
    pub refused: u64,
    /// The number of times that the guest broke a rule of its rings, by a chain of buffers or by a frame's
    /// header.
    pub invalid: u64,
    /// Frames from the guest that waited because of its `rate=`, or that were forwarded to fewer ports than
    /// their address requires because of its `storm=`.
    pub over_budget: u64,
    /// The number of times that the guest's thread did not run its loop for 5 ms although frames were waiting
    /// for the guest.
    pub stalls: u64,
    /// The state of coalescing for the guest; left out unless it may be off (`--coalesce`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coalescing: Option<Switched>,
}

impl GuestFigures {
    fn new(name: &str, of: &Reading) -> Self {
        let hold_us = |share| rounded(of.engine.hold_ns.quantile(share) as f64 / 1e3, 1);
        Self {
            name: name.to_owned(),
            frames: of.nic_in.frames + of.nic_in.ring_drops,
            deliveries: of.host_out.packets,
            bytes: of.host_out.bytes,
            bytes_copied: of.host_out.bytes_copied,
            copies: copies(&of.host_out),
            bytes_copied_aside: of.nic_in.bytes_copied_aside
                + of.host_out.bytes_copied_aside
                + of.nic_out.bytes_copied_aside,
            pieces: pieces(&of.host_out),
            packets_per_aggregate: packets_per_aggregate(&of.engine),
            hold_p50_us: hold_us(0.5),
            hold_p99_us: hold_us(0.99),
            dropped: of.nic_in.ring_drops + of.host_out.dropped_frames,
            sent: of.host_in.frames,
            refused: of.nic_out.dropped_frames,
            invalid: of.host_in.invalid,
            over_budget: of.over_budget,
            stalls: of.stalls,
            coalescing: Switched::new(&of.coalescing),
        }
    }
}

/// The figures of a source of frames.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Incoming {
    /// Number of packets received.
    pub packets: u64,
    /// Bytes of the received packets.
    pub bytes: u64,
    /// The receive rate, in Gbit/s (10^9 bits per second).
    pub gbit_per_s: f64,
    /// Number of packets lost because the ring was full.
    pub ring_drops: u64,
    /// Number of packets dropped because they were truncated.
    pub truncated: u64,
    /// Frames whose metadata contradicts their headers, plus the number of times that the other side of a
    /// shared ring broke a rule of the ring, by a chain of buffers or by a frame header.
    pub invalid: u64,
}

/// The figures of pure ACKs.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PureAcks {
    /// Number of pure ACKs that arrived.
    pub packets: u64,
    /// Deliveries of pure ACKs; equal to `packets` if pure ACKs are not aggregated.
    pub deliveries: u64,
    /// Average number of pure ACKs per delivery.
    pub per_delivery: f64,
    /// Number of pure ACKs that were delivered together with other pure ACKs.
    pub aggregated: u64,
}

/// The figures of a sink of packets.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Outgoing {
    /// Packets sent; an aggregate counts as one.
    pub deliveries: u64,
    /// Frames in the packets that were sent. Together with dropped and kept frames they equal the frames
    /// passed to the sink plus `segments_added`.
    pub frames: u64,
    /// Number of bytes of the packets that were sent.
    pub bytes: u64,
    /// Number of bytes copied into the memory of a guest; a byte copied twice counts twice. 0 if the sink is
    /// not a guest.
    pub bytes_copied: u64,
    /// The average number of times that each byte was copied.
    pub copies: f64,
    /// Number of bytes that were copied to keep packets while the sink was full.
    pub bytes_copied_aside: u64,
    /// The average number of separate pieces of memory (buffers) per packet; 0 if the sink is not a guest.
    pub pieces: f64,
    /// Number of system calls made for the packets that were sent.
    pub submissions: u64,
    /// Aggregates that the system refused, and that were sent as single frames instead.
    pub fallbacks: u64,
    /// Number of packets that could not be sent.
    pub dropped: u64,
    /// Number of original frames lost with the packets in `dropped`: an aggregate counts as all the frames that
    /// it was built from.
    pub dropped_frames: u64,
    /// Additional segments from GSO frames that were cut because the device cannot segment them; the first
    /// segment of each GSO frame is not counted.
    pub segments_added: u64,
}

impl Figures {
    /// Computes the figures of a whole run up to `now`. `guests` contains the guests' names. Allocates.
    #[must_use]
    pub fn totals(now: &Readings, guests: &[String]) -> Self {
        Self::new("totals", now, guests)
    }

    /// Computes the figures of the interval between the readings `then` and `now` of a run. `guests` contains
    /// the guests' names. Allocates.
    #[must_use]
    pub fn between(then: &Readings, now: &Readings, guests: &[String]) -> Self {
        let elapsed_s = rounded(now.all.elapsed.as_secs_f64(), 3);
        Self { elapsed_s, ..Self::new("interval", &now.since(then), guests) }
    }

    fn new(kind: &'static str, readings: &Readings, guests: &[String]) -> Self {
        let of = &readings.all;
        let (time, engine) = (of.elapsed, &of.engine);
        let seconds = rounded(time.as_secs_f64(), 3);
        let [bypass, flush] = reasons(engine);
        Self {
            kind,
            elapsed_s: seconds,
            interval_s: seconds,
            nic_in: incoming(&of.nic_in, time),
            overload: of.overload,
            not_scheduled: of.not_scheduled,
            unaccounted: of.unaccounted,
            unsent: of.unsent,
            imbalance: of.imbalance.named().collect(),
            host_out: outgoing(&of.host_out),
            coalescing: Switched::new(&of.coalescing),
            packets_per_aggregate: packets_per_aggregate(engine),
            acks: acks(engine),
            ack_split: of.split.as_ref().map(Split::new),
            host_in: incoming(&of.host_in, time),
            nic_out: outgoing(&of.nic_out),
            impaired: impaired(&of.nic_in.impaired),
            impaired_back: impaired(&of.host_in.impaired),
            wire: occurred(of.nic_in.wire.named()),
            wire_back: occurred(of.host_in.wire.named()),
            cpu_s: rounded(of.cpu.as_secs_f64(), 3),
            cpu_percent: rounded(100.0 * ratio(of.cpu.as_secs_f64(), time.as_secs_f64()), 1),
            bypass,
            flush,
            switch: readings.switch.as_ref().map(Switching::new),
            guests: guest_figures(guests, readings),
            workers: WorkerFigures::all(readings),
        }
    }

    /// Returns the number of frames that were lost anywhere: frames in = frames out + frames held + lost
    /// frames.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        let incoming = self.nic_in.ring_drops + self.host_in.ring_drops;
        let cut = self.nic_in.truncated + self.host_in.truncated;
        let refused = self.host_out.dropped_frames + self.nic_out.dropped_frames;
        incoming + cut + self.overload + self.unaccounted + refused
    }

    /// Returns the number of frames by which the counters of rxo's own stages disagree; 0 unless rxo has a
    /// bug.
    #[must_use]
    pub fn unbalanced(&self) -> u64 {
        self.imbalance.values().sum()
    }

    /// Returns the number of times that the other side of a ring broke a rule; a violation need not concern a
    /// frame.
    #[must_use]
    pub const fn invalid(&self) -> u64 {
        self.nic_in.invalid + self.host_in.invalid
    }
}

fn guest_figures(names: &[String], readings: &Readings) -> Vec<GuestFigures> {
    let named = names.iter().zip(&readings.guests);
    named.map(|(name, reading)| GuestFigures::new(name, reading)).collect()
}

fn incoming(from: &SourceCounters, time: Duration) -> Incoming {
    let SourceCounters { frames: packets, bytes, ring_drops, truncated, invalid, .. } = *from;
    let gbit_per_s = rounded(gbit_per_s(bytes, time), 3);
    Incoming { packets, bytes, gbit_per_s, ring_drops, truncated, invalid }
}

/// Returns the impairments by kind, without the counts of frames that passed unchanged.
fn impaired(counters: &ImpairmentCounters) -> BTreeMap<&'static str, u64> {
    occurred(counters.named().filter(|(name, _)| !["taken", "given"].contains(name)))
}

fn outgoing(to: &SinkCounters) -> Outgoing {
    let SinkCounters { packets, bytes, bytes_copied, submissions, fallbacks, .. } = *to;
    Outgoing {
        deliveries: packets,
        frames: to.frames,
        bytes,
        bytes_copied,
        copies: copies(to),
        bytes_copied_aside: to.bytes_copied_aside,
        pieces: pieces(to),
        submissions,
        fallbacks,
        dropped: to.dropped,
        dropped_frames: to.dropped_frames,
        segments_added: to.segments_added,
    }
}

fn copies(to: &SinkCounters) -> f64 {
    rounded(ratio(to.bytes_copied as f64, to.bytes as f64), 3)
}

fn pieces(to: &SinkCounters) -> f64 {
    rounded(ratio(to.pieces as f64, to.packets as f64), 2)
}

fn packets_per_aggregate(engine: &Counters) -> f64 {
    let Counters { singles, aggregates, aggregated_segments, .. } = *engine;
    let (segments, deliveries) = (aggregated_segments + singles, aggregates + singles);
    rounded(ratio(segments as f64, deliveries as f64), 2)
}

fn acks(engine: &Counters) -> PureAcks {
    let (packets, deliveries) = (engine.pure_acks(), engine.ack_deliveries());
    let per_delivery = rounded(ratio(packets as f64, deliveries as f64), 2);
    PureAcks { packets, deliveries, per_delivery, aggregated: engine.aggregated_acks }
}

/// Returns two maps by reason: the number of frames that were not coalesced, and the number of deliveries.
fn reasons(engine: &Counters) -> [BTreeMap<&'static str, u64>; 2] {
    let bypass = BypassReason::ALL.iter().map(|&why| (why.name(), engine.bypassed(why)));
    let flush = FlushReason::ALL.iter().map(|&why| (why.name(), engine.flushed(why)));
    [occurred(bypass), occurred(flush)]
}

/// Returns the counts that are not zero.
fn occurred(counts: impl Iterator<Item = (&'static str, u64)>) -> BTreeMap<&'static str, u64> {
    counts.filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(seconds: u64, frames: u64, deliveries: u64) -> Reading {
        let elapsed = Duration::from_secs(seconds);
        let mut engine = Counters::default();
        (engine.aggregates, engine.aggregated_segments) = (deliveries, frames);
        Reading {
            elapsed,
            cpu: elapsed / 4,
            nic_in: SourceCounters { frames, bytes: frames * 1_000, ..SourceCounters::default() },
            host_out: SinkCounters { packets: deliveries, ..SinkCounters::default() },
            engine,
            ..Reading::default()
        }
    }

    #[test]
    fn an_interval_is_the_difference_of_two_readings() {
        let (then, now) = (reading(2, 1_000_000, 100_000), reading(4, 2_000_000, 150_000));
        let figures = Figures::between(&then.into(), &now.into(), &[]);
        assert_eq!((figures.nic_in.packets, figures.host_out.deliveries), (1_000_000, 50_000));
        assert!((figures.nic_in.gbit_per_s - 4.0).abs() < 1e-9);
        assert!((figures.packets_per_aggregate - 20.0).abs() < 1e-9);
        assert!((figures.cpu_percent - 25.0).abs() < 1e-9);
        assert!((figures.elapsed_s - 4.0).abs() < 1e-9 && (figures.interval_s - 2.0).abs() < 1e-9);
    }

    #[test]
    fn pure_acks_are_counted_apart() {
        let mut then = reading(2, 1_000, 1_000);
        (then.engine.ack_aggregates, then.engine.aggregated_acks) = (10, 100);
        let mut now = reading(4, 2_000, 1_500);
        (now.engine.ack_aggregates, now.engine.aggregated_acks) = (20, 1_000);
        now.engine.ack_singles = 5;
        let PureAcks { packets, deliveries, per_delivery, aggregated } =
            Figures::between(&then.into(), &now.into(), &[]).acks;
        assert_eq!((packets, deliveries, aggregated), (905, 15, 900));
        assert!((per_delivery - 60.33).abs() < 1e-9, "{per_delivery}");
    }

    #[test]
    fn totals_count_from_the_start() {
        let figures = Figures::totals(&reading(4, 2_000_000, 150_000).into(), &[]);
        assert_eq!((figures.kind, figures.nic_in.packets), ("totals", 2_000_000));
    }

    #[test]
    fn what_a_guest_does_wrong_is_neither_lost_nor_refused() {
        let host_in = SourceCounters { invalid: 7, ..SourceCounters::default() };
        let of_guest = Reading { host_in, ..Reading::default() };
        let figures = Figures::totals(&of_guest.clone().into(), &[]);
        assert_eq!((figures.invalid(), figures.lost(), figures.host_in.truncated), (7, 0, 0));
        let guest = GuestFigures::new("web", &of_guest);
        assert_eq!((guest.invalid, guest.refused, guest.sent), (7, 0, 0));
        assert_eq!(figures.host_in.invalid, 7);
    }

    #[test]
    fn copies_on_the_way_to_a_guest_and_from_it_count() {
        let nic_in = SourceCounters { bytes_copied_aside: 1, ..SourceCounters::default() };
        let [host_out, nic_out] = [10, 100]
            .map(|bytes_copied_aside| SinkCounters { bytes_copied_aside, ..Default::default() });
        let of_guest = Reading { nic_in, host_out, nic_out, ..Reading::default() };
        let guest = GuestFigures::new("web", &of_guest);
        assert_eq!((guest.bytes_copied_aside, guest.bytes_copied), (111, 0));
        assert_eq!(Figures::totals(&of_guest.into(), &[]).host_out.bytes_copied_aside, 10);
    }

    #[test]
    fn every_place_where_a_packet_is_lost_counts() {
        let source = SourceCounters { ring_drops: 1, truncated: 10, ..SourceCounters::default() };
        let sink = SinkCounters { dropped: 1, dropped_frames: 100, ..SinkCounters::default() };
        let reading =
            Reading { nic_in: source, host_out: sink, overload: 1_000, ..Reading::default() };
        let reading = Reading { unaccounted: 10_000, ..reading };
        let both = Reading { host_in: source, nic_out: sink, ..reading.clone() };
        assert_eq!(Figures::totals(&reading.into(), &[]).lost(), 11_111);
        assert_eq!(Figures::totals(&both.into(), &[]).lost(), 11_222);
    }
}
