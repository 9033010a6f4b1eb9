//! `rxo-lab smo`: one sender for many receivers (Chan and Cheriton 2013, section 4): measures the sender's
//! cost of an ACK with and without the fast path, and the growth of transfer time from 88 receivers to 168.
//!
//! The flags become a [`plan`]. The same [`sender`] is measured four times: its instructions under callgrind
//! ([`cost`]); on [`virtual_time`] with these instructions; alone on a core ([`knee`]); and as `rxo cast
//! send` in namespaces ([`real`]). The receivers are modelled ([`model`]) except in namespaces. The
//! [`figures`] show the values of the [`paper`] beside ours.

mod card;
mod category;
pub(crate) mod cost;
mod figures;
mod knee;
mod model;
mod paper;
mod plan;
pub(crate) mod real;
mod sender;
mod times;
mod virtual_time;

use anyhow::Result;
use rxo_demo::stats::Spread;
use rxo_demo::turns::{Cases, Turns};
use serde::Serialize;

use self::cost::Cost;
use self::model::{least_time, least_time_of_frames};
use self::plan::Case;
pub(crate) use self::plan::{PARTS, Plan};
use self::real::Fate;
use self::sender::Way;
use self::times::Times;
use self::virtual_time::{Cast, Costs};
use crate::runner::{Experiment, Outcome};

/// The results of all measurements.
#[derive(Clone, Debug, Default, Serialize)]
struct Measured {
    costs: Vec<Cost>,
    /// Link rate on virtual time, in bits per second.
    simulated_rate: Option<f64>,
    simulated: Vec<Cast>,
    /// Link rate between cores, in bits per second.
    knee_rate: Option<f64>,
    /// ACKs of all receivers per segment between cores, with the most receivers.
    acks_a_segment: Option<f64>,
    knee: Vec<Times>,
    real: Vec<Times>,
    /// Number of wrong copies in namespaces.
    wrong: usize,
    hardship: Vec<(Case, real::Sample)>,
}

impl Experiment for Plan {
    fn prepare(&self) -> Result<()> {
        if self.costs.is_empty() { Ok(()) } else { crate::callgrind::check() }
    }

    fn steps(&self) -> Result<usize> {
        let Self { costs, simulated, knee, real, hardship, rounds, .. } = self;
        let calibration = usize::from(!knee.is_empty()) * CALIBRATIONS;
        let timed = calibration + rounds * (knee.len() + real.len());
        Ok(costs.len() + simulated.len() + timed + hardship.len())
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome> {
        let costs = turns.count(
            &self.costs,
            |case| format!("{} receivers, {}", case.receivers, case.way.name()),
            |case| cost::count(case, self.counted_rounds),
            |cost| format!("{:.0} instructions an ACK", cost.ack),
        )?;
        let mut measured = Measured { costs, ..Measured::default() };
        self.simulate(turns, &mut measured)?;
        self.measure_knee(turns, &mut measured)?;
        self.measure_real(turns, &mut measured)?;
        let outcome = Outcome::new(figures::all(&measured), &measured)?;
        let outcome = outcome.claims(figures::aims(&measured)).facts(self.facts(&measured));
        Ok(outcome.intact(measured.is_intact()))
    }

    fn needs_networks(&self) -> bool {
        !(self.knee.is_empty() && self.real.is_empty())
    }
}

impl Measured {
    /// Returns `true` if every copy was right, except that of a receiver that was killed.
    fn is_intact(&self) -> bool {
        let Self { wrong, hardship, .. } = self;
        *wrong == 0 && hardship.iter().all(|((_, receivers), sample)| sample.right > *receivers)
    }
}

impl Plan {
    /// Simulates figure 5 on virtual time, at the knee of the sender without the fast path.
    fn simulate(&self, turns: &Turns<'_>, measured: &mut Measured) -> Result<()> {
        let Some(most) = self.simulated.iter().map(|(_, receivers)| *receivers).max() else {
            return Ok(());
        };
        let Measured { costs, .. } = measured;
        let Some(stack) = costs_of(costs, (Way::Stack, most)) else { return Ok(()) };
        let bytes = self.simulated_bytes;
        let alone = virtual_time::cast((Way::Stack, most), UNLIMITED, bytes, stack)?;
        let rate = raised(knee_rate(bytes, alone.busy_seconds), bytes, |rate| {
            Ok(virtual_time::cast((Way::Stack, most), rate, bytes, stack)?.seconds)
        })?;
        let casts = turns.count(
            &self.simulated,
            |case| format!("virtual time, {}", name(case)),
            |case| {
                let costs = costs_of(costs, case).unwrap_or(stack);
                virtual_time::cast(case, rate, bytes, costs)
            },
            |cast| format!("{:.3} s", cast.seconds),
        )?;
        measured.simulated_rate = Some(rate);
        measured.simulated = casts;
        Ok(())
    }

    /// Measures figure 5 between cores, at the knee's rate, which is found first.
    fn measure_knee(&self, turns: &Turns<'_>, measured: &mut Measured) -> Result<()> {
        let Some(most) = self.knee.iter().map(|(_, receivers)| *receivers).max() else {
            return Ok(());
        };
        let (bytes, cores) = (self.knee_bytes, self.cores);
        let alone = turns.measure(
            Cases { cases: &[(Way::Stack, most)], rounds: CALIBRATIONS, rotated: 1 },
            |case| format!("link without limit, {}", name(case)),
            |case, _| knee::cast(case, UNLIMITED, bytes, cores),
            |timed| format!("{:.3} s", timed.seconds),
        )?;
        let alone = alone.concat();
        let Some(alone) = Spread::over(&alone, |timed| timed.seconds) else { return Ok(()) };
        let rate = raised(knee_rate(bytes, alone.median), bytes, |rate| {
            Ok(knee::cast((Way::Stack, most), rate, bytes, cores)?.seconds)
        })?;
        let samples = turns.measure(
            Cases { cases: &self.knee, rounds: self.rounds, rotated: self.knee.len() },
            |case| format!("knee, {}", name(case)),
            |case, _| knee::cast(case, rate, bytes, cores),
            |timed| format!("{:.3} s", timed.seconds),
        )?;
        let least_s = least_time(bytes, rate).as_secs_f64();
        let all = self.knee.iter().zip(&samples);
        let times = all.map(|(case, samples)| {
            let of_one = |timed: &knee::Timed| timed.acks_a_segment / case.1 as f64;
            Times::of(*case, least_s, samples.iter().map(|it| (it.seconds, of_one(it))).collect())
        });
        measured.knee_rate = Some(rate);
        measured.acks_a_segment =
            samples.iter().flatten().map(|it| it.acks_a_segment).reduce(f64::max);
        measured.knee = times.flatten().collect();
        Ok(())
    }

    /// Measures casts in namespaces.
    fn measure_real(&self, turns: &Turns<'_>, measured: &mut Measured) -> Result<()> {
        let bytes = self.real_bytes;
        let line = |sample: &real::Sample| {
            format!("{:.3} s, {} right files", sample.seconds, sample.right)
        };
        let samples = turns.measure(
            Cases { cases: &self.real, rounds: self.rounds, rotated: self.real.len() },
            |case| format!("namespaces, {}", name(case)),
            |case, _| real::cast(case, Fate::Nothing, bytes),
            line,
        )?;
        let hardship = turns.measure(
            Cases { cases: &self.hardship, rounds: 1, rotated: 1 },
            |case| format!("namespaces, hardship, {}", name(case)),
            |case, _| Ok((case, real::cast(case, Fate::Hardship, bytes)?)),
            |(_, sample)| line(sample),
        )?;
        let least_s = least_time_of_frames(bytes, real::BITS_PER_S as f64).as_secs_f64();
        let all = self.real.iter().zip(&samples);
        let times = all.map(|(case, samples)| {
            let casts = samples.iter().map(|it| (it.seconds, it.acks_a_segment));
            Times::of(*case, least_s, casts.collect())
        });
        measured.real = times.flatten().collect();
        measured.wrong = self
            .real
            .iter()
            .zip(&samples)
            .flat_map(|((_, receivers), samples)| {
                samples.iter().map(move |sample| receivers - sample.right)
            })
            .sum();
        measured.hardship = hardship.concat();
        Ok(())
    }
}

fn name((way, receivers): Case) -> String {
    format!("{receivers} receivers, {}", way.name())
}

/// Returns the costs that were counted for the nearest number of receivers; `None` if none were.
fn costs_of(costs: &[Cost], (way, receivers): Case) -> Option<Costs> {
    let of_way = costs.iter().filter(|cost| cost.case.way == way);
    let nearest = of_way.min_by_key(|cost| cost.case.receivers.abs_diff(receivers))?;
    Some(Costs {
        ack_ns: nearest.ack / INSTRUCTIONS_A_NS,
        segment_ns: nearest.segment / INSTRUCTIONS_A_NS,
    })
}

/// Raises the link rate from `rate` until the sender takes longer than the link by the same ratio as at the
/// knee.
fn raised(mut rate: f64, bytes: u64, seconds: impl Fn(f64) -> Result<f64>) -> Result<f64> {
    let longer = 1.0 + paper::GROWTH[1] / 100.0;
    for _ in 0..MOST_RAISES {
        if seconds(rate)? >= longer * least_time(bytes, rate).as_secs_f64() {
            break;
        }
        rate *= longer;
    }
    Ok(rate)
}

/// Returns the link rate of the knee for a sender that alone takes `seconds`. At this rate the link is faster
/// than the sender by the ratio between 168 and 88 receivers without TCP-PARO in the paper.
fn knee_rate(bytes: u64, seconds: f64) -> f64 {
    let at_one = least_time(bytes, 1.0).as_secs_f64();
    at_one / seconds * (1.0 + paper::GROWTH[1] / 100.0)
}

/// Rate of a link that limits nothing, in bits per second.
const UNLIMITED: f64 = 1e12;
/// Speed of the simulated processor, in instructions per nanosecond.
const INSTRUCTIONS_A_NS: f64 = 1.0;
/// Number of measurements of the knee.
const CALIBRATIONS: usize = 3;
/// Most increases of the rate. A sender on an unlimited link may wait for its window, so its first estimate
/// can be too low.
const MOST_RAISES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the sample of a cast to 168 receivers under loss, with `right` correct copies.
    fn under_loss(right: usize) -> real::Sample {
        real::Sample {
            seconds: 41.0,
            right,
            receivers: 170,
            failed: vec!["ejected".to_owned()],
            exit_code: Some(1),
            group_repairs: 1,
            own_repairs: 1,
            lost: 1,
            acks_a_segment: 0.1,
        }
    }

    /// A wrong copy must change the exit code.
    #[test]
    fn a_wrong_copy_under_loss_is_one() {
        let is_intact = |right| {
            let hardship = vec![((Way::Fast, 168), under_loss(right))];
            Measured { hardship, ..Measured::default() }.is_intact()
        };
        assert!(is_intact(169), "all but the one that was killed");
        assert!(!is_intact(168));
        assert!(!Measured { wrong: 1, ..Measured::default() }.is_intact());
    }
}
