//! Result of the calibration: costs with their spread, and the measurements from which they were fitted.

use rxo_console::numbers::rounded;
use rxo_console::table::Table;
use rxo_trace::projection::{Costs, Fit, Observation};
use serde::Serialize;

use super::plan::{Plan, Setting};
use super::run::Sample;
use super::wake::Wakes;
use crate::experiment::Findings;
use crate::stats::Spread;
use crate::wrap::count;

/// The measurements of all rounds of a calibration.
#[derive(Debug)]
pub(super) struct Measured {
    /// The samples of each setting of the plan, at least one per setting.
    pub(super) samples: Vec<Vec<Sample>>,
    /// Cost of the engine alone in each round, in nanoseconds per packet.
    pub(super) coalesce_ns: Vec<f64>,
    /// The measurements of wake-ups, one per round; empty where they cannot be measured.
    pub(super) wakes: Vec<Wakes>,
}

/// The fitted costs, their spread, and the fit's error.
#[derive(Debug, Serialize)]
pub(crate) struct Calibration {
    /// The costs that were fitted to the medians over all rounds.
    pub(super) costs: Costs,
    /// For each cost, the smallest and the largest value among the fits of single rounds.
    pub(super) spreads: Spreads,
    /// Largest difference between a measurement and the value that the fitted costs predict, as a fraction of
    /// the measurement.
    pub(super) worst_error: f64,
    pub(super) measurements: Vec<Row>,
    pub(super) rounds: usize,
    pub(super) window_s: f64,
}

/// The spread of each fitted cost over the rounds.
#[derive(Debug, Serialize)]
pub(super) struct Spreads {
    packet_ns: Spread,
    byte_ns: Spread,
    device_ns: Spread,
    coalesce_ns: Spread,
    /// The spread of the cost of a wake-up, in nanoseconds; `None` if this cost was not measured.
    wake_ns: Option<Spread>,
}

/// The medians of one setting over all rounds, as a row of the table.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    mtu: u32,
    max_segments: u16,
    packets_per_delivery: f64,
    wire_bytes_per_packet: f64,
    ns_per_packet: Spread,
    /// The time per packet that the fitted costs predict, in nanoseconds.
    fitted_ns_per_packet: f64,
}

impl Calibration {
    /// Fits costs to the measurements. Returns `None` if the measurements do not determine every cost.
    pub(super) fn of(measured: &Measured, plan: &Plan) -> Option<Self> {
        let coalesce_ns = Spread::of(measured.coalesce_ns.iter().copied())?;
        let medians: Option<Vec<Observation>> =
            measured.samples.iter().map(|samples| median(samples)).collect();
        let fit = Fit::of(&medians?)?;
        let wake_ns = Spread::of(measured.wakes.iter().map(|wakes| wakes.ns(fit.packet_ns)));
        let mut costs = fit.costs(coalesce_ns.median);
        costs.wake_ns = wake_ns.map_or(0.0, |spread| spread.median);
        if costs.checked().is_err() || costs.packet_ns <= 0.0 {
            return None;
        }
        let rows = plan.settings.iter().zip(&measured.samples);
        let rows = rows.map(|(&setting, samples)| Row::of(setting, samples, &fit));
        Some(Self {
            costs: tidy(costs),
            spreads: measured.spreads(coalesce_ns, wake_ns)?,
            worst_error: rounded(fit.worst_error, 3),
            measurements: rows.collect::<Option<_>>()?,
            rounds: plan.rounds,
            window_s: rounded(plan.window.as_secs_f64(), 3),
        })
    }

    /// Returns a sentence about the method, to be printed below the table.
    pub(super) fn legend(&self) -> String {
        format!(
            "Medians of {} of {} s, least and most in brackets; of the side that receives.",
            count(self.rounds, "round"),
            self.window_s
        )
    }

    fn sentences(&self) -> String {
        let Costs { packet_ns, byte_ns, coalesce_ns, device_ns, wake_ns } = self.costs;
        let spreads = &self.spreads;
        let range = |spread: Spread, digits: usize| {
            format!("({:.digits$}-{:.digits$})", spread.min, spread.max)
        };
        let doubt = if self.worst_error > 0.2 {
            " That is much: the machine is busy. Measure again when less runs, or for longer."
        } else {
            ""
        };
        let waking = match spreads.wake_ns {
            Some(spread) => format!("costs {wake_ns:.0} ns {}", range(spread, 0)),
            None => "was not measured, because the kernel does not poll in a thread that can be seen here".to_owned(),
        };
        format!(
            "A packet that the host's stack handles costs {packet_ns:.0} ns {}, a byte {byte_ns:.3} ns {}, \
             each packet from the device {device_ns:.0} ns {} and coalescing it {coalesce_ns:.1} ns {}. \
             Waking the side that receives {waking}. The costs explain every measurement to {:.0} %.{doubt}\n\n\
             --costs packet={packet_ns}ns,byte={byte_ns}ns,device={device_ns}ns,coalesce={coalesce_ns}ns,\
             wake={wake_ns}ns",
            range(spreads.packet_ns, 0),
            range(spreads.byte_ns, 3),
            range(spreads.device_ns, 0),
            range(spreads.coalesce_ns, 1),
            (100.0 * self.worst_error).ceil()
        )
    }
}

impl Findings for Calibration {
    fn paragraphs(&self) -> Vec<String> {
        let mut table = Table::new(&HEAD);
        self.measurements.iter().for_each(|row| table.row(row.cells()));
        vec![table.render()]
    }

    /// Does nothing: this report contains no verdict to withdraw, because its text omits the conclusion on a
    /// busy machine anyway.
    fn withhold(&mut self) {}

    fn conclusion(&self) -> Option<String> {
        Some(self.sentences())
    }
}

impl Measured {
    fn spreads(&self, coalesce_ns: Spread, wake_ns: Option<Spread>) -> Option<Spreads> {
        let rounds = self.coalesce_ns.iter().enumerate();
        let fits = rounds.filter_map(|(round, &coalesce_ns)| {
            // A round that was interrupted lacks some settings, so it gives no observation.
            let samples = self.samples.iter().map(|samples| samples.get(round).map(observation));
            let observations: Vec<_> = samples.collect::<Option<_>>()?;
            Fit::of(&observations).map(|fit| tidy(fit.costs(coalesce_ns)))
        });
        let fits: Vec<Costs> = fits.collect();
        let spread = |cost: fn(&Costs) -> f64| Spread::of(fits.iter().map(cost));
        Some(Spreads {
            packet_ns: spread(|costs| costs.packet_ns)?,
            byte_ns: spread(|costs| costs.byte_ns)?,
            device_ns: spread(|costs| costs.device_ns)?,
            coalesce_ns: coalesce_ns.rounded(1),
            wake_ns: wake_ns.map(|spread| spread.rounded(0)),
        })
    }
}

impl Row {
    fn of(setting: Setting, samples: &[Sample], fit: &Fit) -> Option<Self> {
        let median = median(samples)?;
        let ns = Spread::over(samples, |sample| sample.ns)?;
        let fitted =
            fit.packet_ns * median.deliveries + fit.byte_ns * median.wire_bytes + fit.fixed_ns;
        Some(Self {
            mtu: setting.mtu,
            max_segments: setting.max_segments,
            packets_per_delivery: rounded(1.0 / median.deliveries, 2),
            wire_bytes_per_packet: rounded(median.wire_bytes, 0),
            ns_per_packet: ns.rounded(1),
            fitted_ns_per_packet: rounded(fitted, 1),
        })
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.mtu.to_string(),
            self.max_segments.to_string(),
            format!("{:.1}", self.packets_per_delivery),
            self.ns_per_packet.ranged(0),
            format!("{:.0}", self.fitted_ns_per_packet),
        ]
    }
}

/// Returns the median of each measured quantity, computed separately; `None` without samples.
fn median(samples: &[Sample]) -> Option<Observation> {
    let of = |value: fn(&Sample) -> f64| Spread::of(samples.iter().map(value)).map(|s| s.median);
    Some(Observation {
        deliveries: of(|sample| sample.deliveries)?,
        wire_bytes: of(|sample| sample.wire_bytes)?,
        ns: of(|sample| sample.ns)?,
    })
}

const fn observation(sample: &Sample) -> Observation {
    Observation { deliveries: sample.deliveries, wire_bytes: sample.wire_bytes, ns: sample.ns }
}

/// Returns `costs` rounded to the digits that the measurement justifies.
fn tidy(costs: Costs) -> Costs {
    Costs {
        packet_ns: rounded(costs.packet_ns, 1),
        byte_ns: rounded(costs.byte_ns, 4),
        device_ns: rounded(costs.device_ns, 1),
        coalesce_ns: rounded(costs.coalesce_ns, 1),
        wake_ns: rounded(costs.wake_ns, 0),
    }
}

const HEAD: [&str; 5] =
    ["MTU", "at most in one", "packets per delivery", "ns per packet", "as fitted"];
