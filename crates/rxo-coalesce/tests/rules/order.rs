//! Checks of order and time for rules that may restore the order of segments.

use core::time::Duration;

use rxo_frame::Instant;
use rxo_testkit::naive::{Reading, Segment};
use rxo_testkit::oracle::are_related;
use rxo_testkit::promise::Observed;
use rxo_testkit::script::{Script, Step};

/// Checks that two related frames change their order only if both are segments with payload of one flow, and
/// the one that is delivered first precedes the other in the byte stream.
pub(crate) fn is_kept_or_restored(script: &Script, observed: &Observed) {
    let readings: Vec<Reading> = (0..script.frame_count()).map(|at| script.reading(at)).collect();
    let order = observed.frame_order();
    for (place, first) in order.iter().enumerate() {
        for second in &order[place + 1..] {
            let (ahead, behind) = (&readings[*first], &readings[*second]);
            assert!(
                second > first || !are_related(behind, ahead) || precedes(ahead, behind),
                "frame {first} was delivered before frame {second}, which came first"
            );
        }
    }
}

fn precedes(ahead: &Reading, behind: &Reading) -> bool {
    let (Reading::Segment(ahead), Reading::Segment(behind)) = (ahead, behind) else { return false };
    let is_data = |segment: &Segment| !segment.payload.is_empty();
    is_data(ahead) && is_data(behind) && (ahead.seq.wrapping_sub(behind.seq) as i32) < 0
}

/// Returns the number of segments with payload that were delivered after one that follows them in the byte
/// stream of their flow.
pub(crate) fn late_segments(script: &Script, order: &[usize]) -> usize {
    let mut ends = std::collections::HashMap::new();
    let is_late = |at: &&usize| {
        let Reading::Segment(segment) = script.reading(**at) else { return false };
        let end = segment.seq.wrapping_add(segment.payload.len() as u32);
        let furthest = ends.entry((segment.ends, segment.ports)).or_insert(segment.seq);
        let is_late = (segment.seq.wrapping_sub(*furthest) as i32) < 0;
        if !is_late {
            *furthest = end;
        }
        is_late
    };
    order.iter().filter(is_late).count()
}

/// Checks that no segment is held for longer than `most`, counted from its push, beyond its own poll.
pub(crate) fn holds_are_bounded(script: &Script, observed: &Observed, most: Duration) {
    let (mut now, mut added, mut pushed, mut ended) = (Instant::ZERO, 0, 0, 0);
    let mut pushed_at = vec![Instant::ZERO; script.frame_count()];
    for (step, shown) in script.steps.iter().chain(&[Step::Flush]).zip(&observed.steps) {
        for shown in shown {
            for frame in shown.frames.iter().filter(|frame| **frame < ended) {
                let held = shown.at.since(pushed_at[*frame]);
                assert!(held <= most, "frame {frame} was held for {held:?}, more than {most:?}");
            }
        }
        added += usize::from(matches!(step, Step::Frame(_)));
        if matches!(step, Step::Push | Step::Poll | Step::Flush) {
            pushed_at[pushed..added].fill(now);
            pushed = added;
        }
        if matches!(step, Step::EndOfPoll | Step::Poll) {
            ended = pushed;
        }
        if let Step::Advance(time) = step {
            now = now + *time;
        }
    }
}
