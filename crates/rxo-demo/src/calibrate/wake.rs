//! Measures the cost of waking the side that receives, without rxo: the kernel's thread that polls an interface, and the
//! reader.
//!
//! At a low rate there are more wake-ups per packet than at a high rate. Measurements at two rates therefore
//! yield the cost of one wake-up: the difference of their times per packet, divided by the difference of their
//! wake-ups per packet.

use anyhow::Result;
use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{CpuMeter, KernelGro, Lab, LabOptions, times_slept};

use super::plan::Plan;

/// The processor time per packet at the two rates of [`RATES`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Wakes {
    rates: [Rate; 2],
}

/// The measurement at one rate, per packet on the wire.
#[derive(Clone, Copy, Debug)]
struct Rate {
    deliveries: f64,
    wakes: f64,
    ns: f64,
}

impl Wakes {
    /// Measures both rates once, in a network that is built for them. `None` if the kernel does not
    /// poll in a thread that this process can see, as in a container, or too few packets arrived.
    ///
    /// # Errors
    /// If the network cannot be built, or a transfer fails.
    pub(super) fn measure(plan: &Plan) -> Result<Option<Self>> {
        let lab = Lab::direct_with(KernelGro::On, LabOptions::default())?;
        // Old kernels and some containers refuse a thread.
        let poller = lab.host().interface(Lab::HOST_INTERFACE).receive_in_thread();
        let Ok(Some(poller)) = poller else { return Ok(None) };
        let [slow, fast] = RATES.map(|rate| measure(&lab, rate, poller, plan));
        Ok(slow?.zip(fast?).map(|(slow, fast)| Self { rates: [slow, fast] }))
    }

    /// Returns the cost of a wake-up in nanoseconds, if a delivery costs `packet_ns`; 0 if the rates do not differ.
    pub(super) fn ns(&self, packet_ns: f64) -> f64 {
        let [slow, fast] = &self.rates;
        let ns = slow.ns - fast.ns - packet_ns * (slow.deliveries - fast.deliveries);
        let wakes = slow.wakes - fast.wakes;
        if wakes > 0.0 { (ns / wakes).max(0.0) } else { 0.0 }
    }
}

/// Measures one rate; `None` if fewer packets arrive than a cost per packet needs, or a thread ends.
fn measure(lab: &Lab, bytes_per_s: u64, poller: u32, plan: &Plan) -> Result<Option<Rate>> {
    let config = BulkConfig { limit_bytes_per_s: Some(bytes_per_s), ..BulkConfig::default() };
    let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config)?;
    let meter =
        CpuMeter::new().threads(READER, transfer.receiver_threads()).process(POLLER, poller);
    transfer.measure(plan.warm_up, &meter)?;
    let counts = || -> Result<_> {
        let packets = lab.peer().interface(Lab::PEER_INTERFACE).counters()?.sent_frames;
        Ok((packets, lab.host().stack_counters()?.deliveries, times_slept(poller)))
    };
    let before = counts()?;
    let window = transfer.measure(plan.window, &meter)?;
    let after = counts()?;
    transfer.stop()?;
    let packets = (after.0 - before.0) as f64;
    let parts = [READER, POLLER].iter().map(|part| window.cpu.part(part)).sum::<Option<_>>();
    let slept = after.2.zip(before.2).map(|(after, before)| after - before);
    Ok(parts.zip(slept).filter(|_| packets >= FEWEST_PACKETS).map(
        |(used, slept): (std::time::Duration, u64)| Rate {
            deliveries: (after.1 - before.1) as f64 / packets,
            wakes: slept as f64 / packets,
            ns: used.as_nanos() as f64 / packets,
        },
    ))
}

/// The two rates, in bytes per second. The kernel sends the packets of each millisecond at once: 14 packets at
/// the first rate, 69 at the second.
const RATES: [u64; 2] = [20_000_000, 100_000_000];
const READER: &str = "reader";
const POLLER: &str = "poller";
const FEWEST_PACKETS: f64 = 500.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(wakes: f64, deliveries: f64, wake_ns: f64) -> Rate {
        Rate { wakes, deliveries, ns: 500.0 + 800.0 * deliveries + wake_ns * wakes }
    }

    #[test]
    fn two_rates_tell_the_cost_of_a_wake_up() {
        let wakes =
            Wakes { rates: [rate(1.0 / 14.0, 1.0 / 14.0, 8_000.0), rate(0.02, 0.03, 8_000.0)] };
        assert!((wakes.ns(800.0) - 8_000.0).abs() < 1e-6);
    }

    #[test]
    fn what_cannot_be_told_is_no_cost() {
        let same = Wakes { rates: [rate(0.02, 0.02, 8_000.0); 2] };
        assert_eq!(same.ns(800.0), 0.0);
        let noise = Wakes { rates: [rate(0.05, 0.02, 0.0), rate(0.02, 0.02, 9_000.0)] };
        assert_eq!(noise.ns(800.0), 0.0);
    }
}
