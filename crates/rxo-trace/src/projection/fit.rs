//! Derives the costs of receiving from measurements, by least squares. The model of the processor time per
//! packet is `fixed + byte × bytes + packet × deliveries + (wake + cold × coldness) × wakes`. The coldness grows with the idle
//! time before a wake-up ([`Costs::coldness`]).

use super::costs::Costs;

/// One measurement: the processor time of receiving, per packet on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// The number of deliveries to the stack per packet: 1 without coalescing, 1/k with `k` packets per delivery.
    pub deliveries: f64,
    /// The number of bytes on the wire per packet.
    pub wire_bytes: f64,
    /// The number of times per packet that the receiving side slept and was woken; 0 where wake-ups are not counted.
    pub wakes: f64,
    /// The mean idle time before a wake-up, in nanoseconds; 0 if it is unknown.
    pub idle_ns: f64,
    /// The processor time per packet, in nanoseconds.
    pub ns: f64,
}

/// The costs that explain the measurements best.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fit {
    /// The cost of each delivery to the stack, in nanoseconds.
    pub packet_ns: f64,
    /// The cost of each byte on the wire, in nanoseconds.
    pub byte_ns: f64,
    /// The cost of each packet on the wire, in nanoseconds: device, coalescing, gathering.
    pub fixed_ns: f64,
    /// The cost of each wake-up, in nanoseconds; 0 if no measurement counts wake-ups.
    pub wake_ns: f64,
    /// The largest additional cost of a wake-up after an idle time, in nanoseconds; 0 if all idle times are equal or unknown.
    pub cold_ns: f64,
    /// The largest difference between a measurement and its prediction, as a fraction of the measurement.
    pub worst_error: f64,
}

impl Fit {
    /// Returns the costs with the smallest sum of squared relative errors. A cost that would be negative is
    /// set to 0, and the others are computed without it. `None` if the measurements cannot distinguish the
    /// costs (fewer kinds of measurements than costs), or if a measurement is not a number.
    ///
    /// # Examples
    /// ```
    /// use rxo_trace::projection::{Fit, Observation};
    ///
    /// let ns = |deliveries: f64, wire_bytes: f64| 800.0 * deliveries + 0.25 * wire_bytes + 100.0;
    /// let seen = [(1.0, 60.0), (1.0, 1_500.0), (0.1, 1_500.0), (0.5, 700.0)];
    /// let seen = seen.map(|(deliveries, wire_bytes)| Observation {
    ///     deliveries,
    ///     wire_bytes,
    ///     ns: ns(deliveries, wire_bytes),
    ///     ..Observation::default()
    /// });
    /// let fit = Fit::of(&seen).ok_or("cannot tell the costs apart")?;
    /// assert!((fit.packet_ns - 800.0).abs() < 0.1 && fit.worst_error < 0.001);
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn of(observations: &[Observation]) -> Option<Self> {
        if observations.iter().any(|one| !(one.ns.is_finite() && one.ns > 0.0)) {
            return None;
        }
        let counts = |place: usize| observations.iter().any(|one| row(one)[place] > 0.0);
        let mut is_used = [true, true, true, counts(WAKE), counts(COLD)];
        let costs = loop {
            let Some(costs) = solve(&normal_equations(observations, is_used)) else {
                // With equal idle times every wake-up costs the same.
                if core::mem::take(&mut is_used[COLD]) {
                    continue;
                }
                return None;
            };
            let least = (0..COSTS)
                .filter(|&i| is_used[i])
                .min_by(|&a, &b| costs[a].total_cmp(&costs[b]))?;
            if costs[least] >= 0.0 {
                break costs;
            }
            is_used[least] = false;
        };
        let [packet_ns, byte_ns, fixed_ns, wake_ns, cold_ns] = costs;
        let fit = Self { packet_ns, byte_ns, fixed_ns, wake_ns, cold_ns, worst_error: 0.0 };
        let errors = observations.iter().map(|one| (fit.predict(one) - one.ns).abs() / one.ns);
        Some(Self { worst_error: errors.fold(0.0, f64::max), ..fit })
    }

    /// Returns the processor time per packet in nanoseconds that the costs predict for the counts of `one`.
    #[must_use]
    pub fn predict(&self, one: &Observation) -> f64 {
        let costs = [self.packet_ns, self.byte_ns, self.fixed_ns, self.wake_ns, self.cold_ns];
        row(one).iter().zip(costs).map(|(count, cost)| count * cost).sum()
    }

    /// Returns the result as [`Costs`]. The fixed cost is divided into `coalesce_ns`, the cost of coalescing,
    /// and the device's cost, the rest.
    #[must_use]
    pub fn costs(&self, coalesce_ns: f64) -> Costs {
        Costs {
            packet_ns: self.packet_ns,
            byte_ns: self.byte_ns,
            coalesce_ns,
            device_ns: (self.fixed_ns - coalesce_ns).max(0.0),
            wake_ns: self.wake_ns,
            cold_ns: self.cold_ns,
        }
    }
}

/// The number of costs in the model.
const COSTS: usize = 5;
/// The places of the costs that not every set of measurements tells.
const WAKE: usize = 3;
const COLD: usize = 4;

fn row(one: &Observation) -> [f64; COSTS] {
    let coldness = Costs::coldness(one.idle_ns);
    [one.deliveries, one.wire_bytes, 1.0, one.wakes, one.wakes * coldness]
}

/// Returns the equations of least squares with their right sides. Relative errors are minimized,
/// because large packets would dominate otherwise. Costs that are not used are held at 0.
fn normal_equations(
    observations: &[Observation],
    is_used: [bool; COSTS],
) -> [[f64; COSTS + 1]; COSTS] {
    let mut equations = [[0.0; COSTS + 1]; COSTS];
    for one in observations {
        let row = row(one).map(|value| value / one.ns);
        for i in (0..COSTS).filter(|&i| is_used[i]) {
            for j in (0..COSTS).filter(|&j| is_used[j]) {
                equations[i][j] += row[i] * row[j];
            }
            equations[i][COSTS] += row[i];
        }
    }
    for i in (0..COSTS).filter(|&i| !is_used[i]) {
        equations[i][i] = 1.0;
    }
    equations
}

/// Solves the equations by Gauss-Jordan elimination with the largest pivot first. `None` if they are dependent.
fn solve(equations: &[[f64; COSTS + 1]; COSTS]) -> Option<[f64; COSTS]> {
    // Bytes are thousands and deliveries are fractions: with equal scales a small pivot shows dependent equations.
    let scale: [f64; COSTS] = std::array::from_fn(|i| equations[i][i].sqrt());
    let mut m = *equations;
    for (i, line) in m.iter_mut().enumerate() {
        if scale[i].is_nan() || scale[i] <= 0.0 {
            return None;
        }
        line[COSTS] /= scale[i];
        for (j, value) in line.iter_mut().take(COSTS).enumerate() {
            *value /= scale[i] * scale[j];
        }
    }
    for column in 0..COSTS {
        let pivot =
            (column..COSTS).max_by(|&a, &b| m[a][column].abs().total_cmp(&m[b][column].abs()))?;
        m.swap(column, pivot);
        if m[column][column].abs() < 1e-9 {
            return None;
        }
        let head = m[column];
        for (_, line) in m.iter_mut().enumerate().filter(|(i, _)| *i != column) {
            let factor = line[column] / head[column];
            line.iter_mut().zip(head).for_each(|(value, above)| *value -= factor * above);
        }
    }
    Some(std::array::from_fn(|i| m[i][COSTS] / m[i][i] / scale[i]))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn observed(costs: (f64, f64, f64), noise: f64) -> Vec<Observation> {
        let (packet_ns, byte_ns, fixed_ns) = costs;
        let kinds =
            [(1.0, 1_514.0), (2.0, 1_514.0), (16.0, 1_514.0), (1.0, 9_014.0), (4.0, 9_014.0)];
        let signs = [1.0, -1.0, 1.0, -1.0, 1.0];
        let all = kinds.into_iter().zip(signs);
        all.map(|((k, wire_bytes), sign)| {
            let ns: f64 = packet_ns / k + byte_ns * wire_bytes + fixed_ns;
            let ns = ns * (1.0 + sign * noise);
            Observation { deliveries: 1.0 / k, wire_bytes, ns, ..Observation::default() }
        })
        .collect()
    }

    #[test]
    fn exact_measurements_give_the_costs_back() {
        let fit = Fit::of(&observed((800.0, 0.25, 120.0), 0.0)).unwrap();
        assert!((fit.packet_ns - 800.0).abs() < 1e-6, "{fit:?}");
        assert!((fit.byte_ns - 0.25).abs() < 1e-9 && (fit.fixed_ns - 120.0).abs() < 1e-6);
        assert!(fit.worst_error < 1e-9);
    }

    #[test]
    fn noise_is_averaged_and_told() {
        let fit = Fit::of(&observed((800.0, 0.25, 120.0), 0.02)).unwrap();
        assert!((fit.packet_ns / 800.0 - 1.0).abs() < 0.1, "{fit:?}");
        assert!((0.005..0.05).contains(&fit.worst_error), "{fit:?}");
    }

    #[test]
    fn no_cost_is_negative() {
        let fit = Fit::of(&observed((800.0, 0.25, -50.0), 0.0)).unwrap();
        assert_eq!(fit.fixed_ns, 0.0);
        assert!(fit.packet_ns > 0.0 && fit.byte_ns > 0.0 && fit.worst_error > 0.0, "{fit:?}");
    }

    #[test]
    fn what_cannot_be_told_apart_is_not_guessed() {
        let one = Observation {
            deliveries: 1.0,
            wire_bytes: 1_514.0,
            ns: 900.0,
            ..Observation::default()
        };
        let same = [one; 5];
        assert_eq!(Fit::of(&same), None);
        let one_size = [1.0, 0.5, 0.25].map(|deliveries| Observation {
            deliveries,
            ns: 500.0 + 800.0 * deliveries,
            ..one
        });
        assert_eq!(Fit::of(&one_size), None, "bytes and fixed are one with one size");
        assert_eq!(Fit::of(&[]), None);
        let mut broken = observed((800.0, 0.25, 120.0), 0.0);
        broken[0].ns = f64::NAN;
        assert_eq!(Fit::of(&broken), None);
    }

    #[test]
    fn what_coalescing_does_not_cost_is_the_devices() {
        let fit = Fit { packet_ns: 800.0, byte_ns: 0.2, fixed_ns: 150.0, ..Fit::default() };
        assert_eq!(fit.costs(40.0).device_ns, 110.0);
        assert_eq!(fit.costs(200.0).device_ns, 0.0);
    }

    /// Returns what a kernel's own path shows: deliveries limited to 45, 2 and 8 packets at two packet sizes, in bursts of
    /// `bursts` packets that each wake the receiving side.
    fn woken(costs: [f64; 4], bursts: [f64; 2]) -> Vec<Observation> {
        let [packet_ns, byte_ns, fixed_ns, wake_ns] = costs;
        let kinds = [(45.0_f64, 1_514.0), (2.0, 1_514.0), (8.0, 1_514.0), (7.0, 9_014.0)];
        let all = kinds.into_iter().flat_map(|kind| bursts.map(|burst| (kind, burst)));
        all.map(|((limit, wire_bytes), bytes)| {
            let burst = (bytes / wire_bytes).round().max(1.0);
            let (deliveries, wakes) = ((burst / limit).ceil() / burst, 1.0 / burst);
            let fixed = fixed_ns + byte_ns * wire_bytes;
            let ns = packet_ns * deliveries + wake_ns * wakes + fixed;
            Observation { deliveries, wire_bytes, wakes, idle_ns: 1e6, ns }
        })
        .collect()
    }

    #[test]
    fn wake_ups_are_told_from_deliveries_where_they_are_counted() {
        let costs = [900.0, 0.3, 250.0, 7_000.0];
        let fit = Fit::of(&woken(costs, [20_000.0, 100_000.0])).unwrap();
        let found = [fit.packet_ns, fit.byte_ns, fit.fixed_ns, fit.wake_ns];
        for (found, cost) in found.into_iter().zip(costs) {
            assert!((found / cost - 1.0).abs() < 1e-6, "{fit:?}");
        }
        assert!(fit.worst_error < 1e-9 && fit.costs(0.0).wake_ns == fit.wake_ns);
        // What costs nothing gets 0, although the noise of others would make it negative.
        let fit = Fit::of(&woken([900.0, 0.3, 250.0, -500.0], [20_000.0, 100_000.0])).unwrap();
        assert_eq!(fit.wake_ns, 0.0);
        assert!(fit.packet_ns > 0.0 && fit.byte_ns > 0.0, "{fit:?}");
    }

    #[test]
    fn a_wake_up_for_every_delivery_is_not_told_from_it() {
        let each = |wakes: bool| -> Vec<Observation> {
            let all = observed((800.0, 0.25, 120.0), 0.0).into_iter();
            all.map(|one| Observation { wakes: if wakes { one.deliveries } else { 0.0 }, ..one })
                .collect()
        };
        assert_eq!(Fit::of(&each(true)), None);
        assert_eq!(Fit::of(&each(false)).unwrap().wake_ns, 0.0);
    }

    /// Returns what receiving `mb_per_s` MB/s in bursts of `burst` packets costs.
    fn paced(costs: [f64; COSTS], mb_per_s: f64, packet: (f64, f64), burst: f64) -> Observation {
        let (wire_bytes, limit) = packet;
        let idle_ns = burst * wire_bytes / mb_per_s * 1e3;
        let (deliveries, wakes) = ((burst / limit).ceil() / burst, 1.0 / burst);
        let one = Observation { deliveries, wire_bytes, wakes, idle_ns, ns: 0.0 };
        let [packet_ns, byte_ns, fixed_ns, wake_ns, cold_ns] = costs;
        let fit = Fit { packet_ns, byte_ns, fixed_ns, wake_ns, cold_ns, worst_error: 0.0 };
        Observation { ns: fit.predict(&one), ..one }
    }

    /// Returns what the kernel's settings of `rxo calibrate` show: several limits, lengths, bursts and idle times.
    fn calibrated(costs: [f64; COSTS]) -> Vec<Observation> {
        let (whole, eight, pair, large) =
            ((1_514.0, 45.0), (1_514.0, 8.0), (1_514.0, 2.0), (9_014.0, 7.0));
        let whole = [(5.0, 45.0), (20.0, 45.0), (100.0, 45.0), (5.0, 3.0), (20.0, 13.0)]
            .map(|(mb_per_s, burst)| (mb_per_s, whole, burst));
        let others = [
            (60.0, eight, 45.0),
            (20.0, pair, 45.0),
            (100.0, pair, 45.0),
            (20.0, large, 7.0),
            (100.0, large, 7.0),
        ];
        let all = whole.into_iter().chain(others);
        all.map(|(mb_per_s, packet, burst)| paced(costs, mb_per_s, packet, burst)).collect()
    }

    #[test]
    fn a_wake_up_after_a_longer_idle_time_costs_more() {
        let costs = [900.0, 0.3, 250.0, 7_000.0, 60_000.0];
        let fit = Fit::of(&calibrated(costs)).unwrap();
        assert!((fit.wake_ns / 7e3 - 1.0).abs() < 1e-6 && (fit.cold_ns / 6e4 - 1.0).abs() < 1e-6);
        assert_eq!(fit.costs(0.0).cold_ns, fit.cold_ns);
    }

    proptest! {
        /// Any machine, measured with errors of 3 %: other rates than the measured ones are predicted.
        #[test]
        fn the_fit_predicts_what_was_not_measured(
            costs in [200.0..2e3, 0.05..0.5, 50.0..500.0, 2e3..40e3, 0.0..200e3],
            errors in vec(-0.03..0.03, 10),
        ) {
            let mut seen = calibrated(costs);
            seen.iter_mut().zip(errors).for_each(|(one, error)| one.ns *= 1.0 + error);
            let fit = Fit::of(&seen).unwrap();
            for mb_per_s in [10.0, 40.0, 60.0, 120.0] {
                let truth = paced(costs, mb_per_s, (1_514.0, 45.0), 45.0);
                prop_assert!((fit.predict(&truth) / truth.ns - 1.0).abs() < 0.06, "{mb_per_s} {fit:?}");
            }
        }
    }

    #[test]
    fn a_measurement_is_predicted_from_its_counts() {
        let all = woken([900.0, 0.3, 250.0, 7_000.0], [20_000.0, 100_000.0]);
        let fit = Fit::of(&all).unwrap();
        assert!(all.iter().all(|one| (fit.predict(one) / one.ns - 1.0).abs() < 1e-9));
    }
}
