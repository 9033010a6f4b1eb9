//! Result of the calibration: costs with their spread, and the measurements from which they were fitted.

use rxo_console::numbers::rounded;
use rxo_console::table::Table;
use rxo_trace::projection::{Costs, Fit, Observation};
use serde::Serialize;

use super::plan::{Plan, Setting};
use super::run::Sample;
use crate::experiment::Findings;
use crate::stats::Spread;

/// The measurements of all rounds of a calibration.
#[derive(Debug)]
pub(super) struct Measured {
    /// The settings with their samples, at least one per setting. Without settings of the kernel where its own path cannot
    /// be measured.
    pub(super) samples: Vec<(Setting, Vec<Sample>)>,
    /// Cost of the engine alone in each round, in nanoseconds per packet.
    pub(super) coalesce_ns: Vec<f64>,
}

/// The fitted costs of receiving through rxo, and of the kernel's own path.
#[derive(Debug, Serialize)]
pub(crate) struct Calibration {
    /// The costs of receiving through rxo, fitted to a typical sample of each setting. The costs of a wake-up are the
    /// kernel's.
    pub(super) costs: Costs,
    #[serde(flatten)]
    basis: Basis,
    /// The costs of receiving by the kernel alone; `None` if they were not measured. The cost of merging is part of
    /// `device_ns`.
    pub(super) host: Option<Costs>,
    /// The measurements behind `host`.
    host_basis: Option<Basis>,
    rounds: usize,
    window_s: f64,
    kernel_window_s: f64,
}

/// The measurements of one path, and how well the fitted costs explain them.
#[derive(Debug, Serialize)]
struct Basis {
    /// For each cost, the smallest and the largest value among the fits of single rounds.
    spreads: Spreads,
    /// Largest difference between a measurement and the value that the fitted costs predict, as a fraction of
    /// the measurement.
    worst_error: f64,
    measurements: Vec<Row>,
}

/// The spread of each fitted cost over the rounds.
#[derive(Debug, Serialize)]
struct Spreads {
    packet_ns: Spread,
    byte_ns: Spread,
    device_ns: Spread,
    /// `None` for the kernel, whose merging is part of `device_ns`.
    coalesce_ns: Option<Spread>,
    /// `None` if waking was not measured.
    wake_ns: Option<Spread>,
    cold_ns: Option<Spread>,
}

/// A typical sample of one setting, as a row of the table.
#[derive(Debug, Serialize)]
struct Row {
    mtu: u32,
    max_segments: u16,
    /// The limit of the rate through the kernel; `None` through rxo, which has no limit.
    bytes_per_s: Option<u64>,
    /// The number of packets in a window.
    packets: f64,
    packets_per_delivery: f64,
    /// The number of packets for each sleep of the kernel's polling thread; `None` through rxo, and if it did not sleep.
    packets_per_wake: Option<f64>,
    wire_bytes_per_packet: f64,
    ns_per_packet: Spread,
    /// The time of the sample to which the costs are fitted; see [`typical`].
    typical_ns_per_packet: f64,
    /// The time per packet that the fitted costs predict, in nanoseconds.
    fitted_ns_per_packet: f64,
}

/// The fits to the measurements of one path.
struct Path<'a> {
    samples: Vec<&'a (Setting, Vec<Sample>)>,
    /// The fit to a typical sample of each setting.
    fit: Fit,
    /// The costs of the rounds that determine them, with that of coalescing in each.
    rounds: Vec<Costs>,
}

impl Calibration {
    /// Fits costs to the measurements. Returns `None` if the measurements do not determine every cost of receiving through
    /// rxo.
    pub(super) fn of(measured: &Measured, plan: &Plan) -> Option<Self> {
        let coalesce_ns = Spread::of(measured.coalesce_ns.iter().copied())?;
        let rxo = Path::of(measured, &measured.coalesce_ns, |setting| !setting.is_kernel())?;
        let free = vec![0.0; measured.coalesce_ns.len()];
        let kernel = Path::of(measured, &free, |setting| setting.is_kernel());
        // A delivery without a cost would mean that coalescing can save nothing: then the fit is wrong.
        let kernel = kernel.and_then(|path| Some((path.fit.costs(0.0).checked().ok()?, path)));
        let kernel = kernel.filter(|(costs, _)| costs.packet_ns > 0.0);
        let host = kernel.as_ref().map(|(costs, _)| tidy(*costs));
        let mut costs = rxo.fit.costs(coalesce_ns.median);
        (costs.wake_ns, costs.cold_ns) =
            host.map_or((0.0, 0.0), |host| (host.wake_ns, host.cold_ns));
        if costs.checked().is_err() || costs.packet_ns <= 0.0 {
            return None;
        }
        let host_basis = kernel.and_then(|(_, path)| path.basis());
        let mut basis = rxo.basis()?;
        basis.spreads.coalesce_ns = Some(coalesce_ns.rounded(1));
        if let Some(Basis { spreads: Spreads { wake_ns, cold_ns, .. }, .. }) = host_basis {
            (basis.spreads.wake_ns, basis.spreads.cold_ns) = (wake_ns, cold_ns);
        }
        Some(Self {
            costs: tidy(costs),
            basis,
            host: host.filter(|_| host_basis.is_some()),
            host_basis,
            rounds: plan.rounds,
            window_s: rounded(plan.window.as_secs_f64(), 3),
            kernel_window_s: rounded(plan.kernel_window.as_secs_f64(), 3),
        })
    }

    /// Returns a sentence about the method, to be printed below the table.
    pub(super) fn legend(&self) -> String {
        let which = name_of_typical(self.rounds);
        format!(
            "Times are of {which} of {} s, and of {} s in the kernel, with the least and the most in brackets; of the side that \
             receives.",
            self.window_s, self.kernel_window_s
        )
    }

    fn sentences(&self) -> String {
        let Costs { packet_ns, byte_ns, coalesce_ns, device_ns, .. } = self.costs;
        let Spreads { coalesce_ns: coalescing, .. } = self.basis.spreads;
        format!(
            "Through rxo: a packet that the host's stack handles costs {packet_ns:.0} ns {}, a byte {byte_ns:.3} ns {}, \
             each packet from the device {device_ns:.0} ns {} and coalescing it {coalesce_ns:.1} ns {}. {}\n\n{}\n\n\
             rxo     {}\n{}",
            range(self.basis.spreads.packet_ns, 0),
            range(self.basis.spreads.byte_ns, 3),
            range(self.basis.spreads.device_ns, 0),
            coalescing.map_or(String::new(), |spread| range(spread, 1)),
            self.basis.accuracy_note(),
            self.of_kernel(),
            option(self.costs),
            self.host.map_or(String::new(), |host| format!("kernel  {}", option(host)))
        )
    }

    /// Returns the sentences on the kernel's own path.
    fn of_kernel(&self) -> String {
        let Some((costs, basis)) = self.host.zip(self.host_basis.as_ref()) else {
            return "The kernel alone was not measured, nor waking the side that receives: the kernel does not poll in a thread \
                    that can be seen here, or the machine is too busy."
                .to_owned();
        };
        let Costs { packet_ns, byte_ns, device_ns, wake_ns, cold_ns, .. } = costs;
        let spreads = &basis.spreads;
        let waking =
            |spread: Option<Spread>| spread.map_or(String::new(), |spread| range(spread, 0));
        format!(
            "The kernel alone: a delivery costs {packet_ns:.0} ns {}, a byte {byte_ns:.3} ns {}, each packet from the \
             device, with merging it, {device_ns:.0} ns {}, and waking the side that receives {wake_ns:.0} ns {}, with up to \
             {cold_ns:.0} ns more {} the longer it slept. {}{}",
            range(spreads.packet_ns, 0),
            range(spreads.byte_ns, 3),
            range(spreads.device_ns, 0),
            waking(spreads.wake_ns),
            waking(spreads.cold_ns),
            basis.accuracy_note(),
            if basis.ignores_limits() {
                " This kernel ignores limits on its aggregates, so the costs are told apart by bursts and packet sizes alone."
            } else {
                ""
            }
        )
    }
}

impl Findings for Calibration {
    fn paragraphs(&self) -> Vec<String> {
        let table = |head: &[&str], basis: &Basis, is_kernel: bool| {
            let mut table = Table::new(head);
            basis.measurements.iter().for_each(|row| table.row(row.cells(is_kernel)));
            table.render()
        };
        let kernel = self.host_basis.iter().map(|basis| table(&KERNEL_HEAD, basis, true));
        core::iter::once(table(&HEAD, &self.basis, false)).chain(kernel).collect()
    }

    /// Does nothing: this report contains no verdict to withdraw, because its text omits the conclusion on a
    /// busy machine anyway.
    fn withhold(&mut self) {}

    fn conclusion(&self) -> Option<String> {
        Some(self.sentences())
    }
}

impl<'a> Path<'a> {
    /// Fits costs to the samples of the settings that `is_meant` selects. `coalesce_ns` is the cost of coalescing in each
    /// round. `None` if the samples do not determine every cost.
    fn of(
        measured: &'a Measured,
        coalesce_ns: &[f64],
        is_meant: impl Fn(&Setting) -> bool,
    ) -> Option<Self> {
        let samples: Vec<_> =
            measured.samples.iter().filter(|(setting, _)| is_meant(setting)).collect();
        let typical: Option<Vec<Observation>> =
            samples.iter().map(|(_, samples)| typical(samples).map(observation)).collect();
        let fit = Fit::of(&typical?)?;
        let rounds = coalesce_ns.iter().enumerate().filter_map(|(round, &coalesce_ns)| {
            // A round that was interrupted lacks some settings, so it gives no observation.
            let samples = samples.iter().map(|(_, samples)| samples.get(round).map(observation));
            let observations: Vec<_> = samples.collect::<Option<_>>()?;
            Fit::of(&observations).map(|fit| tidy(fit.costs(coalesce_ns)))
        });
        let rounds = rounds.collect();
        Some(Self { samples, fit, rounds })
    }

    /// Returns the rows and the spreads, without that of coalescing; `None` if no round determines the costs.
    fn basis(&self) -> Option<Basis> {
        let spread = |cost: fn(&Costs) -> f64| Spread::of(self.rounds.iter().map(cost));
        let rows =
            self.samples.iter().map(|(setting, samples)| Row::of(*setting, samples, &self.fit));
        Some(Basis {
            spreads: Spreads {
                packet_ns: spread(|costs| costs.packet_ns)?,
                byte_ns: spread(|costs| costs.byte_ns)?,
                device_ns: spread(|costs| costs.device_ns)?,
                coalesce_ns: None,
                wake_ns: spread(|costs| costs.wake_ns),
                cold_ns: spread(|costs| costs.cold_ns),
            },
            worst_error: rounded(self.fit.worst_error, 3),
            measurements: rows.collect::<Option<_>>()?,
        })
    }
}

impl Basis {
    /// Returns a sentence on how well the costs explain the measurements.
    fn accuracy_note(&self) -> String {
        let doubt = if self.worst_error > 0.2 {
            " That is much: the machine is busy. Measure again when less runs, or for longer."
        } else {
            ""
        };
        let percent = (100.0 * self.worst_error).ceil();
        format!("These costs explain every measurement to {percent:.0} %.{doubt}")
    }

    /// Returns `true` if aggregates are longer than their limits, because the kernel ignores these.
    fn ignores_limits(&self) -> bool {
        let is_longer = |row: &Row| row.packets_per_delivery > 1.5 * f64::from(row.max_segments);
        self.measurements.iter().any(is_longer)
    }
}

impl Row {
    fn of(setting: Setting, samples: &[Sample], fit: &Fit) -> Option<Self> {
        let typical = typical(samples)?;
        let ns = Spread::over(samples, |sample| sample.ns)?;
        let bytes_per_s = setting.kernel_pace().map(|pace| pace.bytes_per_s);
        Some(Self {
            mtu: setting.mtu,
            max_segments: setting.max_segments,
            bytes_per_s,
            packets: typical.packets as f64,
            packets_per_delivery: rounded(1.0 / typical.deliveries, 2),
            packets_per_wake: bytes_per_s
                .filter(|_| typical.wakes > 0.0)
                .map(|_| rounded(1.0 / typical.wakes, 2)),
            wire_bytes_per_packet: rounded(typical.wire_bytes, 0),
            ns_per_packet: ns.rounded(1),
            typical_ns_per_packet: rounded(typical.ns, 1),
            fitted_ns_per_packet: rounded(fit.predict(&observation(typical)), 1),
        })
    }

    /// Returns the cells of the row; `is_kernel` selects those of the kernel's table.
    fn cells(&self, is_kernel: bool) -> Vec<String> {
        let mb_per_s = self.bytes_per_s.unwrap_or_default() / 1_000_000;
        let per_wake = self.packets_per_wake.unwrap_or_default();
        let mut cells = vec![
            self.mtu.to_string(),
            self.max_segments.to_string(),
            format!("{:.1}", self.packets_per_delivery),
            format!("{:.0} {}", self.typical_ns_per_packet, range(self.ns_per_packet, 0)),
            format!("{:.0}", self.fitted_ns_per_packet),
        ];
        if is_kernel {
            cells.splice(2..2, [mb_per_s.to_string()]);
            cells.splice(4..4, [format!("{per_wake:.1}")]);
        }
        cells
    }
}

/// Formats the smallest and the largest value of `spread`, in brackets.
fn range(spread: Spread, digits: usize) -> String {
    format!("({:.digits$}-{:.digits$})", spread.min, spread.max)
}

/// Formats `costs` as a user would type them.
fn option(costs: Costs) -> String {
    let Costs { packet_ns, byte_ns, coalesce_ns, device_ns, wake_ns, cold_ns } = costs;
    format!(
        "--costs packet={packet_ns}ns,byte={byte_ns}ns,device={device_ns}ns,coalesce={coalesce_ns}ns,wake={wake_ns}ns,\
         cold={cold_ns}ns"
    )
}

/// Returns the sample that counts, by its time per packet; `None` without samples. A quarter of the samples are faster: others on
/// the machine only add to that time, so the median of a busy hour is above what the path costs, and the least is one that
/// was lucky. Of three samples it is the middle one, of one or two the fastest.
fn typical(samples: &[Sample]) -> Option<&Sample> {
    let mut sorted: Vec<&Sample> = samples.iter().collect();
    sorted.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    sorted.get(typical_place(samples.len())).copied()
}

/// Names the round of `rounds` whose sample counts, for readers.
fn name_of_typical(rounds: usize) -> String {
    match (rounds, typical_place(rounds)) {
        (0 | 1, _) => "one round".to_owned(),
        (2, _) => "the faster of 2 rounds".to_owned(),
        (3, _) => "the middle one of 3 rounds".to_owned(),
        (_, 1) => format!("the second fastest of {rounds} rounds"),
        (_, 2) => format!("the third fastest of {rounds} rounds"),
        (_, place) => format!("the {}th fastest of {rounds} rounds", place + 1),
    }
}

/// Returns the place of the sample that counts among `samples` samples, the fastest first, from 0.
const fn typical_place(samples: usize) -> usize {
    (samples + 1) / 4
}

const fn observation(sample: &Sample) -> Observation {
    let Sample { deliveries, wire_bytes, wakes, idle_ns, ns, .. } = *sample;
    Observation { deliveries, wire_bytes, wakes, idle_ns, ns }
}

/// Returns `costs` rounded to the digits that the measurement justifies.
fn tidy(costs: Costs) -> Costs {
    Costs {
        packet_ns: rounded(costs.packet_ns, 1),
        byte_ns: rounded(costs.byte_ns, 4),
        device_ns: rounded(costs.device_ns, 1),
        coalesce_ns: rounded(costs.coalesce_ns, 1),
        wake_ns: rounded(costs.wake_ns, 0),
        cold_ns: rounded(costs.cold_ns, 0),
    }
}

const HEAD: [&str; 5] =
    ["MTU", "at most in one", "packets per delivery", "ns per packet", "as fitted"];
const KERNEL_HEAD: [&str; 7] = [
    "MTU",
    "at most in one",
    "MB/s, kernel",
    "packets per delivery",
    "packets per wake-up",
    "ns per packet",
    "as fitted",
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::plan::Pace;
    use super::*;
    use crate::flags::CalibrateFlags;

    /// The costs of waking, at once and after a long idle time, in nanoseconds.
    const WAKING: [f64; 2] = [6_000.0, 60_000.0];

    fn plan() -> Plan {
        let flags = CalibrateFlags { seconds: "30".into(), save: None, json: false };
        Plan::from_flags(&flags).unwrap()
    }

    /// Returns what a machine with these costs would show: rxo's path costs 900 ns a delivery, the kernel's 500 ns. If waking
    /// costs nothing, the kernel's thread never sleeps.
    fn measured(plan: &Plan, [wake_ns, cold_ns]: [f64; 2]) -> Measured {
        let sample = |setting: &Setting| {
            let wire_bytes = f64::from(setting.mtu) + 14.0;
            let (burst, packet_ns, idle_ns) = match setting.kernel_pace() {
                Some(Pace { bytes_per_s, is_fine }) => {
                    let rate = bytes_per_s as f64;
                    let bytes = if is_fine { rate / 1_000.0 } else { 65_536.0 };
                    ((bytes / wire_bytes).ceil(), 500.0, bytes / rate * 1e9)
                }
                None => (1_000.0, 900.0, 0.0),
            };
            let deliveries = (burst / f64::from(setting.max_segments)).ceil() / burst;
            let wakes = if wake_ns * idle_ns > 0.0 { 1.0 / burst } else { 0.0 };
            let waking = wakes * (wake_ns + cold_ns * Costs::coldness(idle_ns));
            let ns = packet_ns * deliveries + waking + 0.2 * wire_bytes + 200.0;
            let (gbit_per_s, waited) = (1.0, Duration::ZERO);
            Sample {
                packets: 5_000,
                deliveries,
                wire_bytes,
                wakes,
                idle_ns,
                ns,
                gbit_per_s,
                waited,
            }
        };
        let samples = plan.settings.iter().map(|one| (*one, vec![sample(one); plan.rounds]));
        Measured { samples: samples.collect(), coalesce_ns: vec![50.0; plan.rounds] }
    }

    #[test]
    fn a_disturbed_round_and_a_lucky_one_do_not_decide() {
        let plan = plan();
        let sample = measured(&plan, WAKING).samples[0].1[0];
        let typical_of = |times: &[f64]| {
            let samples: Vec<Sample> = times.iter().map(|&ns| Sample { ns, ..sample }).collect();
            typical(&samples).map(|sample| sample.ns)
        };
        assert_eq!(typical_of(&[]), None);
        assert_eq!(typical_of(&[7.0]), Some(7.0));
        assert_eq!(typical_of(&[900.0, 5.0, 1.0]), Some(5.0));
        assert_eq!(typical_of(&[80.0, 6.0, 70.0, 1.0, 9.0, 8.0]), Some(6.0));
    }

    /// The times of the rounds are 1, 2, 3, and so on, so that the one that counts says its place.
    #[test]
    fn the_legend_names_the_round_that_counts() {
        let rows = [
            (1, 1.0, "one round of "),
            (2, 1.0, "the faster of 2 rounds of "),
            (3, 2.0, "the middle one of 3 rounds of "),
            (6, 2.0, "the second fastest of 6 rounds of "),
            (9, 3.0, "the third fastest of 9 rounds of "),
            (25, 7.0, "the 7th fastest of 25 rounds of "),
        ];
        let plan = plan();
        let mut found = Calibration::of(&measured(&plan, WAKING), &plan).unwrap();
        let sample = measured(&plan, WAKING).samples[0].1[0];
        for (rounds, place, name) in rows {
            found.rounds = rounds;
            let legend = found.legend();
            assert!(legend.starts_with(&format!("Times are of {name}")), "{legend}");
            let samples = (1..=rounds).map(|n| Sample { ns: n as f64, ..sample });
            let samples: Vec<Sample> = samples.collect();
            assert_eq!(typical(&samples).map(|sample| sample.ns), Some(place), "{rounds}");
        }
    }

    #[test]
    fn both_paths_have_costs_of_their_own() {
        let plan = plan();
        let found = Calibration::of(&measured(&plan, WAKING), &plan).unwrap();
        let rxo = Costs {
            packet_ns: 900.0,
            byte_ns: 0.2,
            coalesce_ns: 50.0,
            device_ns: 150.0,
            wake_ns: WAKING[0],
            cold_ns: WAKING[1],
        };
        let host = Costs { packet_ns: 500.0, coalesce_ns: 0.0, device_ns: 200.0, ..rxo };
        assert_eq!((found.costs, found.host), (rxo, Some(host)));
        let said = found.sentences();
        assert!(said.contains("kernel  --costs packet=500ns") && !said.contains("ignores"));
        assert_eq!(found.paragraphs().len(), 2);
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["measurements"].as_array().unwrap().len(), 10);
        let rows = json["host_basis"]["measurements"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[4]["packets_per_wake"]), (11, &4.0.into()));
    }

    #[test]
    fn a_kernel_that_cannot_be_measured_is_called_so() {
        let plan = plan().without_kernel();
        let found = Calibration::of(&measured(&plan, WAKING), &plan).unwrap();
        assert_eq!((found.host, found.costs.wake_ns, found.costs.cold_ns), (None, 0.0, 0.0));
        assert!(found.sentences().contains("The kernel alone was not measured"));
        assert_eq!(found.paragraphs().len(), 1);
        assert!(serde_json::to_value(&found).unwrap()["host"].is_null());
    }

    /// As on a busy machine, where packets always wait when the thread looks for them.
    #[test]
    fn a_thread_that_never_sleeps_has_costs_without_waking() {
        let plan = plan();
        let found = Calibration::of(&measured(&plan, [0.0; 2]), &plan).unwrap();
        let host = found.host.unwrap();
        assert_eq!((host.packet_ns, host.wake_ns, host.cold_ns), (500.0, 0.0, 0.0));
        let json = serde_json::to_value(&found).unwrap();
        assert!(json["host_basis"]["measurements"][0]["packets_per_wake"].is_null());
    }

    #[test]
    fn a_kernel_that_ignores_limits_is_called_so() {
        let plan = plan();
        let mut all = measured(&plan, WAKING);
        let free = all.samples.iter().find(|(one, _)| one.max_segments == 45).unwrap().1.clone();
        for (setting, samples) in &mut all.samples {
            if setting.is_kernel() && setting.max_segments < 7 {
                samples.clone_from(&free);
            }
        }
        let found = Calibration::of(&all, &plan).unwrap();
        assert!(found.sentences().contains("ignores limits on its aggregates"));
        assert_eq!(found.paragraphs().len(), 2);
    }
}
