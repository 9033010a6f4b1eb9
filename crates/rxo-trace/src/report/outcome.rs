//! What one policy does to the traffic.

use rxo_coalesce::Histogram;
use serde::Serialize;

/// What one policy, with one rule for polls, does to the traffic.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    /// The profile's name.
    pub policy: String,
    /// Every setting of the policy in force, name and value.
    pub settings: Vec<(String, String)>,
    /// When a poll ends, as the user would type it.
    pub poll: String,
    /// Packets that went in.
    pub packets: u64,
    /// Deliveries that came out: what the host's stack would have handled.
    pub deliveries: u64,
    /// Aggregates of two segments or more among them.
    pub aggregates: u64,
    /// Segments in those.
    pub aggregated_segments: u64,
    /// Segments per delivery that carries data which could be coalesced, those alone among them: what
    /// `rxo run` calls the same.
    pub packets_per_aggregate: f64,
    /// Packets fewer: `packets - deliveries`.
    pub eliminated: u64,
    /// The same for every 10,000 packets, as the RSC paper counts (2006, section 4).
    pub eliminated_per_10_000: f64,
    /// Segments per aggregate, among aggregates of two or more.
    pub segments_per_aggregate: Distribution,
    /// Payload bytes per aggregate, among aggregates of two or more.
    pub bytes_per_aggregate: Distribution,
    /// Nanoseconds from a held segment's arrival to its delivery; first segments only.
    pub hold_ns: Distribution,
    /// Packets that were not candidates, by reason, most first; reasons that never occurred are
    /// left out.
    pub bypassed: Vec<ReasonCount>,
    /// What ended aggregates (and lone candidates), by reason, most first, likewise.
    pub flushed: Vec<ReasonCount>,
    /// Packets in each poll.
    pub packets_per_poll: Distribution,
    /// Nanoseconds from the end of a poll to the next packet.
    pub pause_ns: Distribution,
    /// Polls that came early because a receive ring of 4,096 packets would have been full.
    pub ring_overruns: u64,
}

/// How a value is distributed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Distribution {
    /// How many values.
    pub count: u64,
    /// Their mean; 0 when there are none.
    pub mean: f64,
    /// The median, at most 12 % too high.
    pub p50: u64,
    /// What 99 % do not exceed, likewise.
    pub p99: u64,
    /// The largest.
    pub max: u64,
    /// What 0 %, 5 %, 10 % and so on to 100 % do not exceed, at most 12 % too high.
    pub every_5_percent: [u64; 21],
}

impl From<&Histogram> for Distribution {
    fn from(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            mean: histogram.mean(),
            p50: histogram.quantile(0.5),
            p99: histogram.quantile(0.99),
            max: histogram.max(),
            every_5_percent: std::array::from_fn(|step| histogram.quantile(step as f64 / 20.0)),
        }
    }
}

/// How often one reason occurred.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReasonCount {
    /// The engine's stable name for it.
    pub reason: String,
    /// How often.
    pub count: u64,
    /// Its share of all bypasses, or of all flushes.
    pub share: f64,
    /// What it means, a sentence for people.
    pub meaning: String,
    /// What would change it, where something can.
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
