//! Notes on the method.

use rxo_console::numbers::grouped;

use super::plan::Plan;
use super::{keep, split};

/// Returns notes on the method.
pub(super) fn of(plan: &Plan, split: &[split::Row], keep: &[keep::Row]) -> Vec<String> {
    let mut notes = vec![format!(
        "One connection of {:.1} s in each of {} rounds (medians), over a link of {} Mbit/s made by \
         rxo's middleware. A delay of 20 ms is a round trip: 10 ms each way. \"ms to 90 %\" is from \
         the first byte that arrived until 90 % of what the link carries of payload arrived for 60 \
         ms; - where it never did. Loss is seeded, and the same for all of a round.",
        plan.effort.duration.as_secs_f64(),
        plan.effort.rounds,
        plan.bytes_per_s / 125_000
    )];
    if !split.is_empty() {
        notes.push(format!(
            "Receivers that coalesce: frames reach rxo together every {:.2} ms, as from a card that \
             moderates its interrupts. ACKs are counted where they reach the sender, for each frame \
             that it sent.",
            1e3 * plan.time_of_frames(split::GATHERED_FRAMES).as_secs_f64()
        ));
    }
    if !keep.is_empty() {
        notes.push(format!(
            "Senders whose ACKs are aggregated: ACKs reach rxo together every {:.2} ms, those of \
             {} frames at most.",
            1e3 * plan.time_of_frames(keep::GATHERED_FRAMES).as_secs_f64(),
            keep::GATHERED_FRAMES
        ));
    }
    let all = split.iter().map(|row| &row.figures).chain(keep.iter().map(|row| &row.figures));
    let dropped: u64 = all.map(|figures| figures.dropped).sum();
    if dropped > 0 {
        notes.push(format!(
            "{} frames were lost that should not have been: this machine was too busy.",
            grouped(dropped)
        ));
    }
    notes
}
