//! The figure of the traffic over time: packets received, and deliveries to the host.

use super::table::Drawing;
use crate::figure::{Axis, Figure, Series};
use crate::report::{Course, CourseStep};
use crate::words::plural;

/// Returns the figure of the traffic over time; `None` if the capture has no duration.
pub(super) fn drawing(course: &Course) -> Option<Drawing> {
    if course.steps.len() < 2 {
        return None;
    }
    let (unit, one) = unit_of(course.step_ns.saturating_mul(course.steps.len() as u64));
    let per_second = 1e9 / course.step_ns as f64;
    let line = |name: &str, count: fn(&CourseStep) -> u64| {
        let rate = move |step: &CourseStep| count(step) as f64 * per_second;
        let steps = course.steps.iter().enumerate();
        let points = steps.map(|(place, step)| (start(course, place, one), rate(step)));
        // The last step is drawn as long as the others, although the capture may end within it.
        let end =
            course.steps.last().map(|last| (start(course, course.steps.len(), one), rate(last)));
        Series::steps(name, points.chain(end).collect::<Vec<_>>())
    };
    let most = |count: fn(&CourseStep) -> u64| {
        let most = course.steps.iter().map(count).max().unwrap_or_default();
        (most as f64 * per_second).round() as u64
    };
    let figure =
        Figure::new("The traffic over time", Axis::linear(unit), Axis::linear("per second"))
            .with(line("packets that came", |step| step.packets).colour(1))
            .with(line("deliveries to the host's stack", |step| step.deliveries).colour(0))
            .describe(format!(
                "In {}; at most {} and {} a second.",
                plural(course.steps.len() as u64, "step"),
                plural(most(|step| step.packets), "packet"),
                plural(most(|step| step.deliveries), "delivery")
            ));
    Some(Drawing::low(&figure))
}

/// Returns the start of the step at index `place`, in the unit of the axis.
fn start(course: &Course, place: usize, one: f64) -> f64 {
    course.step_ns as f64 * place as f64 / one
}

/// Returns the unit of time that suits a capture of `ns` nanoseconds, and the unit's length in nanoseconds.
const fn unit_of(ns: u64) -> (&'static str, f64) {
    match ns {
        0..2_000_000 => ("µs since the first packet", 1e3),
        2_000_000..2_000_000_000 => ("ms since the first packet", 1e6),
        2_000_000_000..7_200_000_000_000 => ("s since the first packet", 1e9),
        _ => ("hours since the first packet", 3.6e12),
    }
}
