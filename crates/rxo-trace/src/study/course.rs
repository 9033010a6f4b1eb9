//! The traffic over time, in equal steps.
//!
//! The length of a capture is known only at its end. So steps begin at a microsecond, and whenever
//! there would be more than [`MOST_STEPS`], each pair of steps is joined. Memory is bounded, and at
//! the end there are between half of `MOST_STEPS` and all of it.

use rxo_frame::Instant;

use crate::report::{Course, CourseStep};

/// As many steps as a figure can show.
const MOST_STEPS: usize = 128;
/// The first steps have a length of 2^10 ns.
const FIRST_SHIFT: u32 = 10;

/// The steps so far. The first begins with the first packet.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    first: Option<Instant>,
    /// A step has a length of 2^shift ns.
    shift: u32,
    steps: Vec<CourseStep>,
}

impl Default for Steps {
    fn default() -> Self {
        Self { first: None, shift: FIRST_SHIFT, steps: Vec::with_capacity(MOST_STEPS) }
    }
}

impl Steps {
    /// Counts a packet with `wire_bytes` bytes.
    #[inline]
    pub(super) fn packet(&mut self, at: Instant, wire_bytes: u64) {
        let step = self.step(at);
        step.packets += 1;
        step.bytes += wire_bytes;
    }

    /// Counts deliveries to the host.
    #[inline]
    pub(super) fn deliver(&mut self, at: Instant, deliveries: u64) {
        if deliveries > 0 {
            self.step(at).deliveries += deliveries;
        }
    }

    #[inline]
    fn step(&mut self, at: Instant) -> &mut CourseStep {
        let since_ns = at.nanos_since(*self.first.get_or_insert(at));
        while since_ns >> self.shift >= MOST_STEPS as u64 {
            self.halve();
        }
        let index = (since_ns >> self.shift) as usize;
        if index >= self.steps.len() {
            self.steps.resize(index + 1, CourseStep::default());
        }
        &mut self.steps[index]
    }

    /// Joins each pair of steps.
    #[cold]
    fn halve(&mut self) {
        let half = self.steps.len().div_ceil(2);
        for index in 0..half {
            let mut sum = self.steps[2 * index];
            if let Some(second) = self.steps.get(2 * index + 1) {
                sum.packets += second.packets;
                sum.bytes += second.bytes;
                sum.deliveries += second.deliveries;
            }
            self.steps[index] = sum;
        }
        self.steps.truncate(half);
        self.shift += 1;
    }

    pub(super) fn report(&self) -> Course {
        Course { step_ns: 1 << self.shift, steps: self.steps.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(times_ns: impl Iterator<Item = u64>) -> Course {
        let mut steps = Steps::default();
        for ns in times_ns {
            steps.packet(Instant::from_nanos(ns), 100);
            steps.deliver(Instant::from_nanos(ns), 1);
        }
        steps.report()
    }

    #[test]
    fn every_packet_is_in_a_step_however_long_it_takes() {
        for (count, gap_ns) in [(1, 0), (10, 1), (1_000, 999), (5_000, 1_000_000), (300, 1 << 40)] {
            let course = course((0..count).map(|index| 7_777 + index * gap_ns));
            let sum = |value: fn(&CourseStep) -> u64| course.steps.iter().map(value).sum::<u64>();
            assert_eq!(sum(|step| step.packets), count, "{gap_ns}");
            assert_eq!(sum(|step| step.deliveries), count, "{gap_ns}");
            assert_eq!(sum(|step| step.bytes), 100 * count, "{gap_ns}");
            assert!(course.steps.len() <= MOST_STEPS, "{gap_ns}");
            let covered = course.step_ns as u128 * course.steps.len() as u128;
            assert!(covered > u128::from((count - 1) * gap_ns), "{gap_ns}");
        }
    }

    #[test]
    fn a_long_capture_has_many_steps_of_equal_packets() {
        let course = course((0..64_000).map(|index| index * 50_000));
        assert!(course.steps.len() > MOST_STEPS / 2, "{}", course.steps.len());
        let whole = &course.steps[..course.steps.len() - 1];
        let (least, most) = (
            whole.iter().map(|step| step.packets).min().unwrap(),
            whole.iter().map(|step| step.packets).max().unwrap(),
        );
        assert!(most - least <= 1, "{least} to {most}");
    }

    #[test]
    fn no_times_break_it() {
        let course = course([0, u64::MAX, u64::MAX].into_iter());
        assert_eq!(course.steps.last().map(|step| step.packets), Some(2));
    }
}
