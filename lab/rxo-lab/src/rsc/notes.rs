//! Notes on the method.

use super::cost::{Cost, Pace};
use super::examine::Examined;
use super::plan::{CapturePlan, Plan};

/// Returns notes on the method.
pub(super) fn of(
    plan: &Plan,
    captures: &[Examined],
    costs: &[Cost],
    is_projected: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(CapturePlan::Lab(lab)) = &plan.captures {
        notes.push(format!(
            "Captures: {} packets each as they arrive at the receiver, from real Linux senders with \
             one connection each, each on a link of {} Mbit/s to a switch, which sends them to the \
             receiver over one link of the same rate (the paper: 1 Gbit/s, at which frames are \
             closer together than a kernel's timers can place them). A sender writes a payload when \
             the one before is acknowledged; it leaves as one large send, {} frames back to back, \
             PSH on its last segment.",
            lab.packets,
            lab.bytes_per_s / 125_000,
            lab.burst_frames
        ));
    }
    if !captures.is_empty() {
        notes.push(
            "The paper's text gives ranges for figures 4 to 8 and no values; its drawings are not \
             text. A window counts packets, whatever time they take, as in the paper."
                .into(),
        );
    }
    let lost: u64 = captures.iter().map(|examined| examined.lost_frames).sum();
    if lost > 0 {
        notes.push(format!(
            "{lost} frames arrived that are missing in the captures: this machine was too busy; \
             try again."
        ));
    }
    for examined in captures.iter().filter(|examined| examined.damage.is_some()) {
        notes.push(format!("{} is damaged; only what stands before was read.", examined.name));
    }
    notes.extend(cost_notes(costs, is_projected));
    notes
}

fn cost_notes(costs: &[Cost], projected: bool) -> Vec<String> {
    if costs.is_empty() {
        return Vec::new();
    }
    let mut notes = vec![
        "Processor time: one connection through rxo's worker to a TAP; everything but the sending \
         thread counts, the engine included. 100 % is one core. Figure 11 of the paper is figure 10 \
         on Windows; its values at 8 KB are the only ones that the text states."
            .to_owned(),
    ];
    if costs.iter().any(|cost| cost.pace == Pace::OneGbit) {
        notes.push("Figure 10 is scaled to exactly 0.95 Gbit/s.".to_owned());
    }
    if !projected {
        notes.push(
            "No projection: the costs measured do not fall with the packets of a delivery. Measure \
             again on a quiet machine, with more --rounds."
                .into(),
        );
    }
    notes
}
