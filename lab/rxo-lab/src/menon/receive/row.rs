//! Summarizes several measurements of one case: medians with their ranges.

use rxo_console::numbers::ratio;
use rxo_demo::stats::Spread;
use serde::Serialize;

use super::category::Breakdown;
use super::sample::{Bulk, Exchange};
use super::stack::{Case, Stack};

/// The results of bulk receiving in one case.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) case: Case,
    /// Payload rate in real time, in Gbit/s.
    pub(super) gbit_per_s: Spread,
    /// Payload received per second of the receiving host's processor time (worker and applications), in Gbit.
    pub(super) scaled_gbit_per_s: Spread,
    /// Processor time of worker and applications per data frame, in nanoseconds.
    pub(super) ns_per_packet: Spread,
    /// Share of a core that worker and applications used, in percent.
    pub(super) core_percent: Spread,
    pub(super) packets_per_delivery: Spread,
    pub(super) acks_per_packet: Spread,
    /// Nanoseconds per packet, by category; `None` if no turn was timed.
    pub(super) breakdown_ns: Option<Breakdown>,
    /// Retransmitted segments, summed over all rounds.
    pub(super) retransmissions: u64,
    /// Frames dropped because the ring was full, summed over all rounds.
    pub(super) ring_drops: u64,
}

/// The results of exchanging single bytes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ExchangeRow {
    pub(super) stack: Stack,
    pub(super) per_s: Spread,
    pub(super) p50_us: Spread,
}

impl Row {
    /// Makes the row of `case`; `None` if there is no sample.
    pub(super) fn of(case: Case, samples: &[Bulk]) -> Option<Self> {
        let spread = |value: &dyn Fn(&Bulk) -> f64| Spread::of(samples.iter().map(value));
        let breakdowns: Vec<Breakdown> = samples.iter().filter_map(|one| one.breakdown).collect();
        let cores = |one: &Bulk| 100.0 * ratio(one.worker_s + one.application_s, one.seconds);
        Some(Self {
            case,
            gbit_per_s: spread(&Bulk::gbit_per_s)?,
            scaled_gbit_per_s: spread(&Bulk::scaled_gbit_per_s)?,
            ns_per_packet: spread(&Bulk::ns_per_packet)?,
            core_percent: spread(&cores)?,
            packets_per_delivery: spread(&|one| ratio(one.packets as f64, one.deliveries as f64))?,
            acks_per_packet: spread(&|one| ratio(one.acks as f64, one.packets as f64))?,
            breakdown_ns: Breakdown::median(&breakdowns),
            retransmissions: samples.iter().map(|one| one.retransmissions).sum(),
            ring_drops: samples.iter().map(|one| one.ring_drops).sum(),
        })
    }
}

impl ExchangeRow {
    /// Makes the row of `stack`; `None` if there is no sample.
    pub(super) fn of(stack: Stack, samples: &[Exchange]) -> Option<Self> {
        let per_s = Spread::of(samples.iter().map(|one| one.per_s))?;
        let p50_us = Spread::of(samples.iter().map(|one| one.p50_us))?;
        Some(Self { stack, per_s, p50_us })
    }
}

/// All measured rows, with lookups by case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'r> {
    pub(super) bulk: &'r [Row],
    pub(super) exchange: &'r [ExchangeRow],
}

impl<'r> Rows<'r> {
    pub(super) fn of(self, connections: usize, stack: Stack) -> Option<&'r Row> {
        self.find(Case::wire(connections, stack))
    }

    /// Returns the row of this stack in a guest; `None` if it was not measured.
    pub(super) fn guest(self, stack: Stack) -> Option<&'r Row> {
        self.find(Case::guest(stack))
    }

    fn find(self, case: Case) -> Option<&'r Row> {
        self.bulk.iter().find(|row| row.case == case)
    }

    pub(super) fn exchange(self, stack: Stack) -> Option<&'r ExchangeRow> {
        self.exchange.iter().find(|row| row.stack == stack)
    }

    /// Returns the numbers of connections that were measured with both the optimized and the original stack,
    /// ascending.
    pub(super) fn connections(self) -> Vec<usize> {
        let both = |row: &&Row| {
            row.case == Case::wire(row.case.connections, Stack::OPTIMIZED)
                && self.of(row.case.connections, Stack::ORIGINAL).is_some()
        };
        let mut all: Vec<usize> =
            self.bulk.iter().filter(both).map(|row| row.case.connections).collect();
        all.sort_unstable();
        all
    }

    /// Returns the limits measured with one connection, ascending, with their rows.
    pub(super) fn limits(self) -> Vec<(u16, &'r Row)> {
        let of = |row: &'r Row| {
            let stack = row.case.stack;
            let is_it = row.case == Case::wire(1, stack) && stack.ack_offload;
            stack.aggregation_limit.filter(|_| is_it).map(|limit| (limit, row))
        };
        let mut all: Vec<_> = self.bulk.iter().filter_map(of).collect();
        all.sort_by_key(|(limit, _)| *limit);
        all
    }

    /// Returns the CPU-scaled throughput of a stack, as a multiple of the original's.
    pub(super) fn gain(self, connections: usize, stack: Stack) -> Option<f64> {
        gain(self.of(connections, stack), self.of(connections, Stack::ORIGINAL))
    }

    /// Returns the CPU-scaled throughput of a stack in a guest, as a multiple of the original's.
    pub(super) fn guest_gain(self, stack: Stack) -> Option<f64> {
        gain(self.guest(stack), self.guest(Stack::ORIGINAL))
    }
}

fn gain(row: Option<&Row>, original: Option<&Row>) -> Option<f64> {
    let [row, original] = [row, original].map(|row| Some(row?.scaled_gbit_per_s.median));
    Some(ratio(row?, original?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes a measurement of one second on one core, with `ns_per_packet`.
    pub(in super::super) fn bulk(ns_per_packet: f64, breakdown: Option<Breakdown>) -> Bulk {
        let packets = (1e9 / ns_per_packet) as u64;
        Bulk {
            seconds: 1.0,
            bytes: packets * 1_448,
            packets,
            deliveries: packets / 10,
            acks: packets / 2,
            worker_s: 0.75,
            application_s: 0.25,
            breakdown,
            retransmissions: 1,
            ring_drops: 0,
        }
    }

    pub(in super::super) fn row(connections: usize, stack: Stack, ns_per_packet: f64) -> Row {
        let breakdown = Breakdown::new(|_| ns_per_packet / 9.0);
        Row::of(Case::wire(connections, stack), &[bulk(ns_per_packet, Some(breakdown))]).unwrap()
    }

    #[test]
    fn a_row_says_what_a_packet_costs() {
        let case = Case::wire(1, Stack::ORIGINAL);
        let row =
            Row::of(case, &[bulk(500.0, None), bulk(1_000.0, None), bulk(800.0, None)]).unwrap();
        assert!((row.ns_per_packet.median - 800.0).abs() < 0.01, "{row:?}");
        assert!((row.scaled_gbit_per_s.max - 2e6 * 1_448.0 * 8.0 / 1e9).abs() < 1e-6);
        assert!((row.core_percent.median - 100.0).abs() < 1e-9);
        assert!((row.packets_per_delivery.median - 10.0).abs() < 0.01);
        assert_eq!((row.retransmissions, row.breakdown_ns), (3, None));
        assert!(Row::of(case, &[]).is_none());
    }

    #[test]
    fn rows_are_found_by_what_they_are() {
        let bulk = [
            row(400, Stack::OPTIMIZED, 500.0),
            row(1, Stack::OPTIMIZED, 400.0),
            row(1, Stack::limited(4), 450.0),
            row(1, Stack::ORIGINAL, 800.0),
            row(400, Stack::ORIGINAL, 700.0),
            row(5, Stack::OPTIMIZED, 700.0),
        ];
        let rows = Rows { bulk: &bulk, exchange: &[] };
        assert_eq!(rows.connections(), [1, 400]);
        let limits: Vec<u16> = rows.limits().into_iter().map(|(limit, _)| limit).collect();
        assert_eq!(limits, [4, 20]);
        assert!((rows.gain(1, Stack::OPTIMIZED).unwrap() - 2.0).abs() < 1e-3);
        assert!(rows.gain(5, Stack::OPTIMIZED).is_none());
    }
}
