//! The result of one connection, and the summary of several.

use std::time::Duration;

use rxo::Reading;
use rxo_console::numbers::ratio;
use rxo_demo::stats::Spread;
use serde::Serialize;

use super::growth;
use super::plan::Plan;
use super::transfer::Watched;

/// The result of one connection.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) mbit_per_s: f64,
    pub(super) full_rate_ms: Option<f64>,
    pub(super) acks_per_segment: f64,
    pub(super) per_delivery: f64,
    pub(super) cpu_s_per_gb: f64,
    pub(super) retransmissions: u64,
    pub(super) lost: u64,
    pub(super) inserted: u64,
    pub(super) dropped: u64,
    pub(super) curve: Vec<(f64, f64)>,
}

/// Frames at the sender's interface during the transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frames {
    pub(super) data: u64,
    pub(super) acks: u64,
}

impl Sample {
    pub(super) fn new(plan: &Plan, watched: &Watched, frames: Frames, reading: &Reading) -> Self {
        let reached =
            growth::reached(&watched.arrived, plan.payload_bytes_per_s(), FULL_SHARE, FULL_FOR);
        let gigabytes = watched.received_bytes as f64 / 1e9;
        let dropped = [&reading.nic_in, &reading.host_in]
            .map(|side| side.ring_drops + side.impaired.over_frames + side.impaired.over_bytes);
        Self {
            mbit_per_s: growth::mean_bytes_per_s(&watched.arrived) * 8.0 / 1e6,
            full_rate_ms: reached.map(|time| time.as_secs_f64() * 1e3),
            acks_per_segment: ratio(frames.acks as f64, frames.data as f64),
            per_delivery: ratio(reading.nic_in.frames as f64, reading.host_out.packets as f64),
            cpu_s_per_gb: ratio(watched.cpu.total().as_secs_f64(), gigabytes),
            retransmissions: watched.retransmissions,
            lost: reading.nic_in.impaired.lost + reading.host_in.impaired.lost,
            inserted: reading.split.as_ref().map_or(0, |split| split.inserted),
            dropped: dropped.iter().sum::<u64>()
                + reading.host_out.dropped
                + reading.nic_out.dropped,
            curve: growth::curve(&watched.windows, SEGMENT_BYTES, MOST_POINTS),
        }
    }
}

/// Several connections of one kind: medians with their ranges.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figures {
    /// Payload rate from the first byte to the end.
    pub(super) mbit_per_s: Spread,
    /// Time from the first byte until 90 % of the link's payload rate arrives for 60 ms, over the rounds that
    /// reached it.
    pub(super) full_rate_ms: Option<Spread>,
    /// Number of rounds in which the connection reached full rate.
    pub(super) full_rate_rounds: usize,
    /// Frames that the sender received for each frame that it sent.
    pub(super) acks_per_segment: Spread,
    /// Frames from the wire per delivery to the host.
    pub(super) per_delivery: Spread,
    /// Processor time of both ends and rxo, in seconds per 10^9 bytes of payload.
    pub(super) cpu_s_per_gb: Spread,
    /// Segments sent again, summed over all rounds.
    pub(super) retransmissions: u64,
    /// Frames that the network lost on purpose, in all rounds together.
    pub(super) lost: u64,
    /// ACKs that splitting inserted before those of the receiver, in all rounds together.
    pub(super) inserted_acks: u64,
    /// Frames lost at any other point, in all rounds together.
    pub(super) dropped: u64,
    pub(super) rounds: usize,
    /// The congestion window of the first round, as pairs of seconds and segments.
    pub(super) window: Vec<(f64, f64)>,
}

impl Figures {
    /// Makes the figures of `samples`; `None` if there are none.
    pub(super) fn of(samples: &[Sample]) -> Option<Self> {
        let spread = |value: fn(&Sample) -> f64, decimals| {
            Some(Spread::over(samples, value)?.rounded(decimals))
        };
        let full = samples.iter().filter_map(|sample| sample.full_rate_ms);
        Some(Self {
            mbit_per_s: spread(|sample| sample.mbit_per_s, 1)?,
            full_rate_rounds: full.clone().count(),
            full_rate_ms: Spread::of(full).map(|spread| spread.rounded(0)),
            acks_per_segment: spread(|sample| sample.acks_per_segment, 3)?,
            per_delivery: spread(|sample| sample.per_delivery, 1)?,
            cpu_s_per_gb: spread(|sample| sample.cpu_s_per_gb, 2)?,
            retransmissions: samples.iter().map(|sample| sample.retransmissions).sum(),
            lost: samples.iter().map(|sample| sample.lost).sum(),
            inserted_acks: samples.iter().map(|sample| sample.inserted).sum(),
            dropped: samples.iter().map(|sample| sample.dropped).sum(),
            rounds: samples.len(),
            window: samples.first()?.curve.clone(),
        })
    }

    /// Returns the median time to full rate in milliseconds; `None` unless every round reached it.
    pub(super) fn always_full_ms(&self) -> Option<f64> {
        let is_always = self.full_rate_rounds == self.rounds;
        self.full_rate_ms.filter(|_| is_always).map(|spread| spread.median)
    }
}

/// Share of the link's payload rate that counts as full rate.
const FULL_SHARE: f64 = 0.9;
/// Window over which the rate is measured: three round trips of the slowest network, so that a packet train
/// does not pass for a rate.
const FULL_FOR: Duration = Duration::from_millis(60);
const SEGMENT_BYTES: f64 = 1_448.0;
const MOST_POINTS: usize = 400;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn sample(mbit_per_s: f64, full_rate_ms: Option<f64>) -> Sample {
        Sample {
            mbit_per_s,
            full_rate_ms,
            acks_per_segment: 0.5,
            per_delivery: 1.0,
            cpu_s_per_gb: 2.0,
            retransmissions: 1,
            lost: 0,
            inserted: 0,
            dropped: 0,
            curve: vec![(0.0, 10.0)],
        }
    }

    #[test]
    fn one_round_that_never_came_to_full_rate_is_not_left_out() {
        let figures = Figures::of(&[sample(900.0, Some(100.0)), sample(500.0, None)]).unwrap();
        assert_eq!((figures.full_rate_rounds, figures.rounds), (1, 2));
        assert_eq!(figures.always_full_ms(), None);
        assert!((figures.mbit_per_s.median - 700.0).abs() < 1e-9);
        assert!(Figures::of(&[]).is_none());
    }
}
