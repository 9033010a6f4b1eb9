//! Combines all measurements of one way into a row of the table.

use serde::Serialize;

use super::sample::HostCpu;
use super::{Sample, Way};
use crate::losses::Losses;
use crate::stats::Spread;

/// The figures of one way of ACKs: medians with their spreads, and counts of all rounds together.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The way by which ACKs reached the sender.
    pub way: Way,
    /// Number of connections that sent at the same time.
    pub connections: usize,
    /// Goodput, in 10^9 bits of payload per second.
    pub gbit_per_s: Spread,
    /// Processor time of the sending host's threads, rxo and ksoftirqd, in seconds per 10^9 bytes.
    pub cpu_s_per_gb: Spread,
    /// Time in which the sending host's core was not idle, in seconds per 10^9 bytes.
    pub core_s_per_gb: Spread,
    /// Processor time of both hosts' threads and ksoftirqd, in seconds per 10^9 bytes.
    pub both_cpu_s_per_gb: Spread,
    /// Number of ACKs that the peer sent per data segment of the sender.
    pub acks_per_segment: Spread,
    /// Number of ACKs per delivery to the sender's stack.
    pub acks_per_delivery: Spread,
    /// Processor time of each part of the sending host, in seconds per 10^9 bytes.
    pub cpu_parts_s_per_gb: HostCpu,
    /// Number of data segments sent in all rounds.
    pub segments: u64,
    /// Number of pure ACKs that reached the sending host in all rounds.
    pub acks: u64,
    /// Number of deliveries of the peer's ACKs to the sending host's stack in all rounds.
    pub ack_deliveries: u64,
    #[serde(flatten)]
    /// Lost and retransmitted packets of all rounds together.
    pub losses: Losses,
    /// `true` if every byte of every round arrived as it was sent.
    pub hash_ok: bool,
    /// Number of rounds that were measured.
    pub rounds: usize,
}

impl Row {
    /// Combines the `samples` of `way` into a row of medians; `None` if there are no samples.
    pub fn of(way: Way, connections: usize, samples: &[Sample]) -> Option<Self> {
        let spread =
            |value: fn(&Sample) -> f64| Some(Spread::over(samples, value)?.rounded(DECIMALS));
        let sum = |count: fn(&Sample) -> u64| samples.iter().map(count).sum();
        Some(Self {
            way,
            connections,
            gbit_per_s: spread(|sample| sample.gbit_per_s)?,
            cpu_s_per_gb: spread(|sample| sample.cpu.total())?,
            core_s_per_gb: spread(|sample| sample.cpu.core_busy)?,
            both_cpu_s_per_gb: spread(|sample| sample.both_cpu_s_per_gb)?,
            acks_per_segment: spread(Sample::acks_per_segment)?,
            acks_per_delivery: spread(Sample::acks_per_delivery)?,
            cpu_parts_s_per_gb: HostCpu {
                sender: spread(|sample| sample.cpu.sender)?.median,
                rest: spread(|sample| sample.cpu.rest)?.median,
                ksoftirqd: spread(|sample| sample.cpu.ksoftirqd)?.median,
                core_busy: spread(|sample| sample.cpu.core_busy)?.median,
            },
            segments: sum(|sample| sample.segments),
            acks: sum(|sample| sample.acks),
            ack_deliveries: sum(|sample| sample.ack_deliveries),
            losses: samples.iter().map(|sample| sample.losses).sum(),
            hash_ok: samples.iter().all(|sample| sample.hash_ok),
            rounds: samples.len(),
        })
    }
}

/// Number of decimal places of the figures; more decimals would exceed the precision of the measurement.
const DECIMALS: i32 = 4;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::losses;

    pub(crate) fn sample(gbit_per_s: f64, cpu_s_per_gb: f64, ack_deliveries: u64) -> Sample {
        let cpu = HostCpu { sender: cpu_s_per_gb, ..HostCpu::default() };
        Sample {
            gbit_per_s,
            cpu: HostCpu { core_busy: 2.0 * cpu_s_per_gb, ..cpu },
            both_cpu_s_per_gb: 3.0 * cpu_s_per_gb,
            segments: 2_000,
            acks: 1_000,
            ack_deliveries,
            losses: losses::tests::SOME,
            hash_ok: true,
        }
    }

    #[test]
    fn figures_are_medians_and_counts_are_sums() {
        let samples = [sample(9.0, 1.0, 10), sample(12.0, 2.0, 20), sample(11.0, 4.0, 50)];
        let row = Row::of(Way::AckAggregate, 16, &samples).unwrap();
        assert_eq!(row.gbit_per_s, Spread { median: 11.0, min: 9.0, max: 12.0 });
        assert_eq!(row.cpu_s_per_gb, Spread { median: 2.0, min: 1.0, max: 4.0 });
        assert_eq!(row.acks_per_delivery, Spread { median: 50.0, min: 20.0, max: 100.0 });
        assert!((row.acks_per_segment.median - 0.5).abs() < 1e-9);
        assert_eq!((row.acks, row.ack_deliveries, row.losses.lost()), (3_000, 80, 333));
        assert!(row.hash_ok && row.rounds == 3);
    }

    #[test]
    fn one_wrong_byte_in_one_round_is_told() {
        let wrong = Sample { hash_ok: false, ..sample(9.0, 1.0, 10) };
        assert!(!Row::of(Way::KernelGro, 1, &[sample(9.0, 1.0, 10), wrong]).unwrap().hash_ok);
        assert!(Row::of(Way::KernelGro, 1, &[]).is_none());
    }
}
