//! Notes on the method.

use rxo_console::numbers::rounded;

use super::model::return_share;
use super::plan::Plan;
use super::{Measured, real};

/// Returns notes on the method.
pub(super) fn of(plan: &Plan, measured: &Measured) -> Vec<String> {
    let Measured { knee_rate, simulated_rate, acks_a_segment, .. } = measured;
    let mut notes = Vec::new();
    let mbit = |rate: f64| rounded(rate / 1e6, 1);
    if !plan.costs.is_empty() {
        notes.push(format!(
            "Without the fast path: each ACK by itself through the stack, as in the paper's kernel (pure_acks=bypass). \
             Instructions: callgrind over {} rounds of 16 segments to the group and an ACK from each receiver, in release \
             builds the cost of what is shipped. The turns that take ACKs have nothing to send. The card is a ring in memory; \
             upkeep is what the host does for a connection after its ACK, which the paper does not name.",
            plan.counted_rounds
        ));
        notes.push(
            "Cycles and misses are a simulation by callgrind, not a measurement: caches of 32 and 256 KiB, as a core of the paper's \
             machine has. Cycles are estimated: one an instruction, 10 a miss of the first cache, 100 a miss of the second. The \
             paper's figure 8 compares network processing on several cores with one (figure 6), at 160 receivers."
                .to_owned(),
        );
    }
    if let Some(rate) = simulated_rate {
        notes.push(format!(
            "Virtual time is a simulation: the sender's own code, with one instruction of the counts above a nanosecond, and \
             a link of {} Mbit/s. The rate is that of the knee: the link would carry the file in 1/1.126 of the time that the \
             sender without the fast path needs for the most receivers.",
            mbit(*rate)
        ));
    }
    if let Some(rate) = knee_rate {
        notes.push(format!(
            "The knee: the sender polls on one core; a link of {} Mbit/s and the receivers are modelled on another, behind \
             rings in shared memory. The rate is found by the same rule. All receivers together send {:.1} ACKs for a \
             segment, which take {:.0} % of a return link of this rate.",
            mbit(*rate),
            acks_a_segment.unwrap_or_default(),
            100.0 * return_share(acks_a_segment.unwrap_or_default()),
        ));
    }
    if !plan.real.is_empty() {
        notes.push(format!(
            "Namespaces: rxo cast send on a link of {} Mbit/s, a bridge, and eight namespaces, in each a process with up to \
             21 hosts of rxo. The receivers share the machine with the sender and limit the rate. SHA-256 of every copy is \
             compared with the file's. A receiver sends at most {:.3} ACKs for a segment.",
            mbit(real::BITS_PER_S as f64),
            measured.real.iter().map(|times| times.acks_a_segment).fold(0.0, f64::max)
        ));
    }
    notes
}
