//! The effect of one policy on the traffic.

use rxo_coalesce::Histogram;
use serde::Serialize;

/// The effect of one policy with one poll rule on the traffic.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// The name of the policy's profile.
    pub policy: String,
    /// All settings of the policy, as names and values.
    pub settings: Vec<(String, String)>,
    /// The poll rule of the outcome, as the user would type it.
    pub poll: String,
    /// The number of packets received.
    pub packets: u64,
    /// The number of deliveries to the host's stack.
    pub deliveries: u64,
    /// The number of aggregates of two or more segments among the deliveries.
    pub aggregates: u64,
    /// The number of segments in the aggregates.
    pub aggregated_segments: u64,
    /// The number of TCP segments inside tunnels that were coalesced or could have been. Included in
    /// `packets`.
    pub tunnelled: u64,
    /// The number of deliveries of TCP inside tunnels.
    pub tunnelled_deliveries: u64,
    /// The mean number of segments per delivery of data that could be coalesced, including deliveries of a single
    /// segment. `rxo run` prints the same figure.
    pub packets_per_aggregate: f64,
    /// The number of packets eliminated: `packets - deliveries`.
    pub eliminated: u64,
    /// The number of packets eliminated per 10,000 packets, as the RSC paper counts (2006, section 4).
    pub eliminated_per_10_000: f64,
    /// The number of packets by which `eliminated` may be wrong, because the capture was split at a short
    /// pause, or polls count packets. 0 if it is exact.
    pub eliminated_error: u64,
    /// The number of segments per aggregate, for aggregates of two or more.
    pub segments_per_aggregate: Distribution,
    /// The number of payload bytes per aggregate, for aggregates of two or more segments.
    pub bytes_per_aggregate: Distribution,
    /// The time from arrival to delivery of the first segment of each aggregate, in nanoseconds.
    pub hold_ns: Distribution,
    /// The packets that could not be coalesced, by reason, most frequent first. Reasons that never occurred are
    /// omitted.
    pub bypassed: Vec<ReasonCount>,
    /// The reasons that ended aggregates and single segments, most frequent first. Reasons that never occurred are
    /// omitted.
    pub flushed: Vec<ReasonCount>,
    /// The number of packets per poll.
    pub packets_per_poll: Distribution,
    /// The time from the end of a poll to the next packet, in nanoseconds.
    pub pause_ns: Distribution,
    /// The number of polls that began early because a receive ring of 4,096 packets would have been full.
    pub ring_overruns: u64,
}

/// The distribution of a measured value, such as segments per aggregate.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Distribution {
    /// The number of values.
    pub count: u64,
    /// The mean of the values; 0 if there are none.
    pub mean: f64,
    /// The median of the values, at most 12 % too high.
    pub p50: u64,
    /// The value that 99 % of the values do not exceed, at most 12 % too high.
    pub p99: u64,
    /// The largest of the values.
    pub max: u64,
    /// The values that 0 %, 5 %, 10 % and so on to 100 % of the values do not exceed, at most 12 % too high.
    pub every_5_percent: [u64; 21],
    /// The histogram: the largest value of each bucket that is not empty, and the number of values in it.
    /// Buckets are 12 % wide, and exact below 16.
    #[serde(skip)]
    pub buckets: Vec<(u64, u64)>,
}

impl From<&Histogram> for Distribution {
    fn from(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            mean: histogram.mean(),
            p50: histogram.quantile(0.5),
            p99: histogram.quantile(0.99),
            max: histogram.max(),
            buckets: histogram.buckets().collect(),
            every_5_percent: std::array::from_fn(|step| histogram.quantile(step as f64 / 20.0)),
        }
    }
}

/// A reason for bypasses or flushes, and its frequency.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReasonCount {
    /// The stable name of the reason, as the engine has it.
    pub reason: String,
    /// The number of times that the reason occurred.
    pub count: u64,
    /// The share of the reason among all bypasses or flushes, from 0 to 1.
    pub share: f64,
    /// The meaning of the reason, as a sentence.
    pub meaning: String,
    /// A change that would remove the reason; `None` if nothing can.
    pub remedy: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_what_the_histogram_says() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|value| histogram.record(value));
        let distribution = Distribution::from(&histogram);
        assert_eq!((distribution.count, distribution.max), (100, 100));
        assert_eq!(distribution.every_5_percent[0], 1);
        assert_eq!(distribution.every_5_percent[10], distribution.p50);
        assert_eq!(distribution.every_5_percent[20], 100);
        assert!(distribution.every_5_percent.is_sorted());
    }
}
