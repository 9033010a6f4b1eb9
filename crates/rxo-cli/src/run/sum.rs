//! The sum of the figures of several parts of a run. A part ends when the nic is deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::figures::{Figures, Incoming, Outgoing, PureAcks};
use super::split::Split;
use crate::numbers::{gbit_per_s, ratio, rounded};

type Counts = BTreeMap<&'static str, u64>;

impl Figures {
    /// The sum of these figures and those of a `later` part.
    pub(super) fn and(self, later: Self) -> Self {
        let time_s = self.interval_s + later.interval_s;
        let time = Duration::from_secs_f64(time_s);
        let busy = self.cpu_percent * self.interval_s + later.cpu_percent * later.interval_s;
        let [segments, deliveries] =
            [0, 1].map(|n| self.segments_and_deliveries[n] + later.segments_and_deliveries[n]);
        Self {
            kind: later.kind,
            elapsed_s: rounded(self.elapsed_s + later.elapsed_s, 3),
            interval_s: rounded(time_s, 3),
            nic_in: incoming(self.nic_in, later.nic_in, time),
            overload: self.overload + later.overload,
            host_out: outgoing(self.host_out, later.host_out),
            packets_per_aggregate: rounded(ratio(segments as f64, deliveries as f64), 2),
            segments_and_deliveries: [segments, deliveries],
            acks: acks(self.acks, later.acks),
            ack_split: split(self.ack_split, later.ack_split),
            host_in: incoming(self.host_in, later.host_in, time),
            nic_out: outgoing(self.nic_out, later.nic_out),
            impaired: counts(self.impaired, &later.impaired),
            impaired_back: counts(self.impaired_back, &later.impaired_back),
            cpu_percent: rounded(ratio(busy, time_s), 1),
            bypass: counts(self.bypass, &later.bypass),
            flush: counts(self.flush, &later.flush),
        }
    }
}

fn incoming(a: Incoming, b: Incoming, time: Duration) -> Incoming {
    let bytes = a.bytes + b.bytes;
    Incoming {
        packets: a.packets + b.packets,
        bytes,
        gbit_per_s: rounded(gbit_per_s(bytes, time), 3),
        ring_drops: a.ring_drops + b.ring_drops,
        truncated: a.truncated + b.truncated,
    }
}

fn outgoing(a: Outgoing, b: Outgoing) -> Outgoing {
    Outgoing {
        deliveries: a.deliveries + b.deliveries,
        bytes: a.bytes + b.bytes,
        submissions: a.submissions + b.submissions,
        fallbacks: a.fallbacks + b.fallbacks,
        dropped: a.dropped + b.dropped,
        dropped_frames: a.dropped_frames + b.dropped_frames,
    }
}

fn acks(a: PureAcks, b: PureAcks) -> PureAcks {
    let (packets, deliveries) = (a.packets + b.packets, a.deliveries + b.deliveries);
    PureAcks {
        packets,
        deliveries,
        per_delivery: rounded(ratio(packets as f64, deliveries as f64), 2),
        aggregated: a.aggregated + b.aggregated,
    }
}

fn split(a: Option<Split>, b: Option<Split>) -> Option<Split> {
    let (Some(a), Some(b)) = (&a, &b) else {
        return a.or(b);
    };
    Some(Split {
        acks_in: a.acks_in + b.acks_in,
        acks_out: a.acks_out + b.acks_out,
        stretch_acks: a.stretch_acks + b.stretch_acks,
        templates: a.templates + b.templates,
        expanded: a.expanded + b.expanded,
        segments: a.segments + b.segments,
        evicted: a.evicted + b.evicted,
        passed: counts(a.passed.clone(), &b.passed),
    })
}

fn counts(mut a: Counts, b: &Counts) -> Counts {
    for (name, count) in b {
        *a.entry(name).or_default() += count;
    }
    a
}

#[cfg(test)]
mod tests {
    use rxo::Reading;
    use rxo_coalesce::Counters;
    use rxo_device::SourceCounters;

    use super::*;

    fn part(seconds: u64, frames: u64, aggregates: u64) -> Reading {
        let mut engine = Counters::default();
        (engine.aggregates, engine.aggregated_segments) = (aggregates, frames);
        Reading {
            elapsed: Duration::from_secs(seconds),
            cpu: Duration::from_secs(seconds) / 2,
            nic_in: SourceCounters { frames, bytes: frames * 1_000, ..SourceCounters::default() },
            engine,
            ..Reading::default()
        }
    }

    #[test]
    fn two_parts_are_what_one_would_have_been() {
        let whole = Figures::totals(&part(8, 9_000, 600));
        let first = Figures::totals(&part(2, 3_000, 100));
        let both = first.and(Figures::totals(&part(6, 6_000, 500)));
        let json = |figures: &Figures| serde_json::to_value(figures).unwrap();
        assert_eq!(json(&both), json(&whole));
    }
}
