//! Notes on the method.

use rxo_demo::wrap::count;

use super::plan::Plan;
use super::units::Units;
use crate::limits::Effort;

/// Returns notes on the method.
pub(super) fn of(plan: &Plan, units: Units) -> Vec<String> {
    let Effort { rounds, duration } = plan.effort;
    vec![
        format!(
            "Medians of {} of {} s, least and most in brackets. Linux senders, CUBIC, MTU 1500, \
             in a private network on one core; rxo's host and a reading thread for each connection on \
             another. Gbit/CPU s: what those receive for a second of their processor time, the \
             paper's CPU-scaled throughput.",
            count(rounds, "round"),
            duration.as_secs_f64()
        ),
        "Original: each frame alone, an ACK for every second segment. Receive Aggregation: the profile \
         menon-2008, Aggregation Limit 20, as many ACKs, each built by itself. ACK Offload: those \
         ACKs leave the stack as one template, which is expanded before the device."
            .to_owned(),
        "Categories: sampled turns of the worker are timed stage by stage, and the shares carried to \
         its processor time; per-byte is the reading threads', waiting and waking included, in which \
         buffers are given back too. One read in sixteen is compared with what was sent, and every \
         read before and after the time that is measured; lengths of all streams are compared at the \
         end."
            .to_owned(),
        units.note(),
        "A guest is rxo's host on a TAP that a bridge joins with the wire; what the bridge does is done on \
         the sender's core and in no account. The paper's text states the values shown and no others; \
         its figures are drawings."
            .to_owned(),
    ]
}
