//! Derives the costs of receiving from measurements, by least squares. The model of the processor time per
//! packet is `fixed + byte × bytes + packet × deliveries`.

use super::costs::Costs;

/// One measurement of the processor time for receiving, per packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The number of deliveries to the stack per packet: 1 without coalescing, 1/k with `k` packets per delivery.
    pub deliveries: f64,
    /// The number of bytes on the wire per packet.
    pub wire_bytes: f64,
    /// The processor time per packet, in nanoseconds.
    pub ns: f64,
}

/// The costs that explain the measurements best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The cost of each delivery to the stack, in nanoseconds.
    pub packet_ns: f64,
    /// The cost of each byte on the wire, in nanoseconds.
    pub byte_ns: f64,
    /// The cost of each packet on the wire, in nanoseconds: device, coalescing, gathering.
    pub fixed_ns: f64,
    /// The largest difference between a measurement and its prediction, as a fraction of the measurement.
    pub worst_error: f64,
}

impl Fit {
    /// Returns the costs with the smallest sum of squared relative errors. A cost that would be negative is set
    /// to 0, and the other costs are computed without it. `None` if the measurements cannot distinguish the
    /// costs (fewer than three kinds), or if a measurement is not a number.
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
        let mut is_used = [true; 3];
        let costs = loop {
            let costs = solve(&normal_equations(observations, is_used))?;
            let least =
                (0..3).filter(|&i| is_used[i]).min_by(|&a, &b| costs[a].total_cmp(&costs[b]))?;
            if costs[least] >= 0.0 {
                break costs;
            }
            is_used[least] = false;
        };
        let [packet_ns, byte_ns, fixed_ns] = costs;
        let errors = observations.iter().map(|one| {
            let row = row(one);
            let said: f64 = row.iter().zip(&costs).map(|(a, b)| a * b).sum();
            (said - one.ns).abs() / one.ns
        });
        let worst_error = errors.fold(0.0, f64::max);
        Some(Self { packet_ns, byte_ns, fixed_ns, worst_error })
    }

    /// Returns the result as [`Costs`]. The fixed cost is split: `coalesce_ns` is the cost of coalescing, and
    /// the rest is the cost of the device. Wake-ups are not part of the fit.
    #[must_use]
    pub fn costs(&self, coalesce_ns: f64) -> Costs {
        Costs {
            packet_ns: self.packet_ns,
            byte_ns: self.byte_ns,
            coalesce_ns,
            device_ns: (self.fixed_ns - coalesce_ns).max(0.0),
            wake_ns: 0.0,
        }
    }
}

const fn row(one: &Observation) -> [f64; 3] {
    [one.deliveries, one.wire_bytes, 1.0]
}

/// Returns the three normal equations of least squares with their right sides. The equations minimize relative
/// errors, because large packets would dominate otherwise. Costs that are not used are fixed at 0.
fn normal_equations(observations: &[Observation], is_used: [bool; 3]) -> [[f64; 4]; 3] {
    let mut equations = [[0.0; 4]; 3];
    for one in observations {
        let row = row(one).map(|value| value / one.ns);
        for i in (0..3).filter(|&i| is_used[i]) {
            for j in (0..3).filter(|&j| is_used[j]) {
                equations[i][j] += row[i] * row[j];
            }
            equations[i][3] += row[i];
        }
    }
    for i in (0..3).filter(|&i| !is_used[i]) {
        equations[i][i] = 1.0;
    }
    equations
}

/// Solves the equations by Gauss-Jordan elimination with the largest pivot first. Returns `None` if the
/// equations are linearly dependent.
fn solve(equations: &[[f64; 4]; 3]) -> Option<[f64; 3]> {
    // Bytes are thousands and deliveries are fractions: with equal scales a small pivot shows dependent equations.
    let scale: [f64; 3] = std::array::from_fn(|i| equations[i][i].sqrt());
    let mut m = *equations;
    for (i, line) in m.iter_mut().enumerate() {
        if scale[i].is_nan() || scale[i] <= 0.0 {
            return None;
        }
        line[3] /= scale[i];
        for (j, value) in line.iter_mut().take(3).enumerate() {
            *value /= scale[i] * scale[j];
        }
    }
    for column in 0..3 {
        let pivot =
            (column..3).max_by(|&a, &b| m[a][column].abs().total_cmp(&m[b][column].abs()))?;
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
    Some(std::array::from_fn(|i| m[i][3] / m[i][i] / scale[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(costs: (f64, f64, f64), noise: f64) -> Vec<Observation> {
        let (packet_ns, byte_ns, fixed_ns) = costs;
        let kinds =
            [(1.0, 1_514.0), (2.0, 1_514.0), (16.0, 1_514.0), (1.0, 9_014.0), (4.0, 9_014.0)];
        let signs = [1.0, -1.0, 1.0, -1.0, 1.0];
        let all = kinds.into_iter().zip(signs);
        all.map(|((k, wire_bytes), sign)| {
            let ns: f64 = packet_ns / k + byte_ns * wire_bytes + fixed_ns;
            Observation { deliveries: 1.0 / k, wire_bytes, ns: ns * (1.0 + sign * noise) }
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
        let same = [Observation { deliveries: 1.0, wire_bytes: 1_514.0, ns: 900.0 }; 5];
        assert_eq!(Fit::of(&same), None);
        let one_size = [1.0, 0.5, 0.25].map(|deliveries| Observation {
            deliveries,
            wire_bytes: 1_514.0,
            ns: 500.0 + 800.0 * deliveries,
        });
        assert_eq!(Fit::of(&one_size), None, "bytes and fixed are one with one size");
        assert_eq!(Fit::of(&[]), None);
        let mut broken = observed((800.0, 0.25, 120.0), 0.0);
        broken[0].ns = f64::NAN;
        assert_eq!(Fit::of(&broken), None);
    }

    #[test]
    fn what_coalescing_does_not_cost_is_the_devices() {
        let fit = Fit { packet_ns: 800.0, byte_ns: 0.2, fixed_ns: 150.0, worst_error: 0.0 };
        assert_eq!(fit.costs(40.0).device_ns, 110.0);
        assert_eq!(fit.costs(200.0).device_ns, 0.0);
    }
}
