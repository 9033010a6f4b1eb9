//! The model `x + y/k` of the processor time of a packet.

use serde::Serialize;

use super::costs::Costs;
use crate::report::{Outcome, Traffic};

/// A projection: the savings of coalescing, as studied, at other rates.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Projection {
    /// The processor time for each packet that the stack handles, in nanoseconds.
    pub packet_ns: f64,
    /// The processor time for each byte on the wire, in nanoseconds.
    pub byte_ns: f64,
    /// The processor time of coalescing for each received packet, in nanoseconds.
    pub coalesce_ns: f64,
    /// The processor time for each packet from the device, in nanoseconds.
    pub device_ns: f64,
    /// The origin of the costs, as reports name it.
    pub costs_from: String,
    /// The mean size of a packet on the wire, in bytes.
    pub packet_bytes: f64,
    /// The number of packets per delivery under the studied policy: the model's `k`.
    pub packets_per_delivery: f64,
    /// The part of a packet's processor time that coalescing cannot reduce, including the cost of coalescing
    /// itself, in nanoseconds: the model's `x`.
    pub fixed_ns: f64,
    /// The part of a packet's processor time that is divided by `k`, in nanoseconds: the model's `y`.
    pub divided_ns: f64,
    /// The processor time of a packet without coalescing, in nanoseconds: bytes, device and the model's `y`.
    pub without_ns: f64,
    /// The processor time of a packet with coalescing, in nanoseconds: `x + y/k`.
    pub with_ns: f64,
    /// The share of processor time that coalescing saves, at most 1; negative if it costs more.
    pub saved: f64,
    /// The rate in Gbit/s at which one core is full without coalescing.
    pub one_core_without_gbit_per_s: f64,
    /// The rate in Gbit/s at which one core is full with coalescing.
    pub one_core_with_gbit_per_s: f64,
    /// The number of busy cores by rate, from 1 to 400 Gbit/s.
    pub points: Vec<Point>,
    /// The processor time of a packet by `k`.
    pub steps: Vec<Step>,
}

/// The cost of receiving at one rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Point {
    /// The rate on the wire, in 10^9 bits per second.
    pub rate_gbit_per_s: f64,
    /// The number of cores that are busy without coalescing; 0.5 is half a core, 2 are two cores.
    pub cores_without: f64,
    /// The number of cores that are busy with coalescing.
    pub cores_with: f64,
}

/// The cost of a packet at one value of `k`, the number of packets per delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Step {
    /// The number of packets per delivery: `k`.
    pub packets_per_delivery: f64,
    /// The processor time of a packet, in nanoseconds.
    pub packet_ns: f64,
}

impl Projection {
    /// Returns the projection of `costs` for this traffic under the policy of `outcome`; `None` if there are no
    /// packets. `from` is the origin of the costs.
    ///
    /// # Examples
    /// ```
    /// use rxo_trace::projection::{Costs, Projection};
    /// use rxo_trace::report::{Outcome, Traffic};
    ///
    /// let traffic = Traffic { packets: 1_000, bytes: 1_500_000, ..Traffic::default() };
    /// let outcome = Outcome { packets: 1_000, deliveries: 50, ..Outcome::default() };
    /// let projection = Projection::of(&Costs::ASSUMED, "assumed", &traffic, &outcome)
    ///     .ok_or("no packets")?;
    /// assert_eq!(projection.packets_per_delivery, 20.0);
    /// assert!(projection.saved > 0.5);
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn of(costs: &Costs, from: &str, traffic: &Traffic, outcome: &Outcome) -> Option<Self> {
        let packet_bytes = ratio(traffic.bytes, traffic.packets)?;
        let k = ratio(outcome.packets, outcome.deliveries)?;
        // At the rates of a projection the receiving side has no idle time from which packets would wake it.
        let Costs { packet_ns, byte_ns, coalesce_ns, device_ns, wake_ns: _, cold_ns: _ } = *costs;
        let fixed_ns = byte_ns * packet_bytes + device_ns + coalesce_ns;
        let divided_ns = packet_ns;
        let (without_ns, with_ns) = costs.of_packet(packet_bytes, k);
        if without_ns <= 0.0 {
            return None;
        }
        // Bits per nanosecond equal 10^9 bits per second.
        let bits = packet_bytes * 8.0;
        let point = |rate: f64| Point {
            rate_gbit_per_s: rate,
            cores_without: rate / bits * without_ns,
            cores_with: rate / bits * with_ns,
        };
        let step = |k: f64| Step { packets_per_delivery: k, packet_ns: fixed_ns + divided_ns / k };
        Some(Self {
            packet_ns,
            byte_ns,
            coalesce_ns,
            device_ns,
            costs_from: from.to_owned(),
            packet_bytes,
            packets_per_delivery: k,
            fixed_ns,
            divided_ns,
            without_ns,
            with_ns,
            saved: 1.0 - with_ns / without_ns,
            one_core_without_gbit_per_s: bits / without_ns,
            one_core_with_gbit_per_s: bits / with_ns,
            points: RATES_GBIT_PER_S.map(point).to_vec(),
            steps: STEPS.map(step).to_vec(),
        })
    }
}

fn ratio(whole: u64, parts: u64) -> Option<f64> {
    (whole > 0 && parts > 0).then(|| whole as f64 / parts as f64)
}

/// The rates for which the projection is computed, in Gbit/s: the common rates of Ethernet.
const RATES_GBIT_PER_S: [f64; 10] = [1.0, 2.5, 5.0, 10.0, 25.0, 40.0, 50.0, 100.0, 200.0, 400.0];

/// The values of `k`, the number of packets per delivery, for the curve. Menon's figure 11 ends at 35; a Linux
/// aggregate of full-size segments has up to 45 segments.
const STEPS: [f64; 14] =
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 32.0, 45.0];

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs {
        packet_ns: 800.0,
        byte_ns: 0.2,
        coalesce_ns: 50.0,
        device_ns: 0.0,
        wake_ns: 0.0,
        cold_ns: 0.0,
    };

    fn studied(packets: u64, deliveries: u64) -> Option<Projection> {
        let traffic = Traffic { packets: 1_000, bytes: 1_500_000, ..Traffic::default() };
        let outcome = Outcome { packets, deliveries, ..Outcome::default() };
        Projection::of(&COSTS, "a test", &traffic, &outcome)
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9 * right.abs().max(1.0)
    }

    #[test]
    fn bytes_stay_and_packets_are_divided() {
        let projection = studied(1_000, 100).unwrap();
        assert!(near(projection.without_ns, 300.0 + 800.0));
        assert!(near(projection.with_ns, 300.0 + 50.0 + 80.0));
        assert!(near(projection.fixed_ns + projection.divided_ns / 10.0, projection.with_ns));
        assert!(near(projection.saved, 1.0 - 430.0 / 1_100.0));
    }

    #[test]
    fn one_core_is_full_where_the_curve_crosses_one() {
        let projection = studied(1_000, 100).unwrap();
        assert!(near(projection.one_core_without_gbit_per_s, 12_000.0 / 1_100.0));
        let at_400 = projection.points.last().unwrap();
        assert!(near(at_400.rate_gbit_per_s, 400.0));
        assert!(near(at_400.cores_without, 400.0 / projection.one_core_without_gbit_per_s));
        assert!(near(at_400.cores_with, 400.0 / projection.one_core_with_gbit_per_s));
    }

    #[test]
    fn the_device_is_paid_with_and_without() {
        let traffic = Traffic { packets: 10, bytes: 15_000, ..Traffic::default() };
        let outcome = Outcome { packets: 10, deliveries: 1, ..Outcome::default() };
        let costs = Costs { device_ns: 100.0, ..COSTS };
        let projection = Projection::of(&costs, "a test", &traffic, &outcome).unwrap();
        assert!(near(projection.without_ns, 300.0 + 100.0 + 800.0));
        assert!(near(projection.with_ns, 300.0 + 100.0 + 50.0 + 80.0));
    }

    #[test]
    fn coalescing_that_finds_nothing_is_told_as_a_loss() {
        let projection = studied(1_000, 1_000).unwrap();
        assert!(near(projection.with_ns - projection.without_ns, 50.0));
        assert!(projection.saved < 0.0);
    }

    #[test]
    fn the_curve_over_k_falls_and_meets_the_traffic() {
        let projection = studied(1_000, 125).unwrap();
        let falls = projection.steps.windows(2).all(|pair| pair[1].packet_ns < pair[0].packet_ns);
        assert!(falls, "{:?}", projection.steps);
        let eight = projection.steps.iter().find(|step| near(step.packets_per_delivery, 8.0));
        assert!(near(eight.unwrap().packet_ns, projection.with_ns));
    }

    #[test]
    fn of_no_packets_nothing_is_said() {
        assert_eq!(studied(0, 0), None);
        let free = Costs { coalesce_ns: 1.0, ..Costs::default() };
        let traffic = Traffic { packets: 1, bytes: 60, ..Traffic::default() };
        let outcome = Outcome { packets: 1, deliveries: 1, ..Outcome::default() };
        assert_eq!(Projection::of(&free, "", &traffic, &outcome), None);
    }
}
