//! The traffic over time, counted in equal steps.
//!
//! The length of a capture is known only at its end. Therefore steps are short at first (2^10 ns), and whenever
//! there would be more than [`MOST_STEPS`], each pair of neighbouring steps is joined. This bounds the memory,
//! and leaves between half of `MOST_STEPS` and `MOST_STEPS` steps at the end. Steps begin at multiples of their
//! length since 1970, so the steps of two parts of a capture can be added, in any order.

use rxo_frame::Instant;
use serde::{Deserialize, Serialize};

use crate::report::{Course, CourseStep};

/// The maximum number of steps, which is the number that a figure can show.
const MOST_STEPS: usize = 128;
/// The length of the first steps, as a power of two in nanoseconds: 2^10 ns.
const FIRST_SHIFT: u32 = 10;

/// The steps of time so far, with the counts of each step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Steps {
    /// The length of a step, as a power of two in nanoseconds.
    shift: u32,
    /// The number of the first step; steps are counted from 1970.
    first: u64,
    steps: Vec<CourseStep>,
}

impl Default for Steps {
    fn default() -> Self {
        Self { shift: FIRST_SHIFT, first: 0, steps: Vec::with_capacity(MOST_STEPS) }
    }
}

impl Steps {
    /// Counts a packet with `wire_bytes` bytes that arrived at `at`.
    #[inline]
    pub(super) fn packet(&mut self, at: Instant, wire_bytes: u64) {
        let step = self.step(at.as_nanos());
        step.packets += 1;
        step.bytes += wire_bytes;
    }

    /// Counts `deliveries` deliveries to the host at `at`.
    #[inline]
    pub(super) fn deliver(&mut self, at: Instant, deliveries: u64) {
        if deliveries > 0 {
            self.step(at.as_nanos()).deliveries += deliveries;
        }
    }

    /// Adds the counts of another part, step by step.
    pub(super) fn add(&mut self, other: &Self) {
        while self.shift < other.shift {
            self.halve();
        }
        for (number, step) in (other.first..).zip(&other.steps) {
            if *step != CourseStep::default() {
                self.step(number << other.shift).add(step);
            }
        }
    }

    /// Returns `true` if the steps are valid. Invalid steps, read from a file, could cause a panic.
    pub(super) fn are_valid(&self) -> bool {
        let last = self.first.checked_add(self.steps.len() as u64);
        (FIRST_SHIFT..64).contains(&self.shift)
            && self.steps.len() <= MOST_STEPS
            && last.is_some_and(|last| last <= (u64::MAX >> self.shift) + 1)
            && self.steps.first().is_none_or(|step| *step != CourseStep::default())
            && self.steps.last().is_none_or(|step| *step != CourseStep::default())
    }

    #[inline]
    fn step(&mut self, ns: u64) -> &mut CourseStep {
        if (ns >> self.shift).wrapping_sub(self.first) >= self.steps.len() as u64 {
            self.make_room(ns);
        }
        &mut self.steps[((ns >> self.shift) - self.first) as usize]
    }

    /// Makes sure that there is a step for the time `ns`, in nanoseconds since 1970.
    #[cold]
    fn make_room(&mut self, ns: u64) {
        if self.steps.is_empty() {
            self.first = ns >> self.shift;
        }
        loop {
            let number = ns >> self.shift;
            let last = (self.first + self.steps.len() as u64).saturating_sub(1);
            if number.max(last) - number.min(self.first) < MOST_STEPS as u64 {
                break;
            }
            self.halve();
        }
        let number = ns >> self.shift;
        if number < self.first {
            let before = (self.first - number) as usize;
            self.steps.splice(0..0, core::iter::repeat_n(CourseStep::default(), before));
            self.first = number;
        }
        let needed = (number - self.first) as usize + 1;
        self.steps.resize(self.steps.len().max(needed), CourseStep::default());
    }

    /// Joins each pair of neighbouring steps, so that steps become twice as long.
    #[cold]
    fn halve(&mut self) {
        let odd = self.first % 2;
        let mut joined = Vec::with_capacity(MOST_STEPS);
        for (number, step) in (odd..).zip(&self.steps) {
            if joined.len() as u64 == number / 2 {
                joined.push(CourseStep::default());
            }
            joined.last_mut().into_iter().for_each(|sum: &mut CourseStep| sum.add(step));
        }
        self.steps = joined;
        self.first /= 2;
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
        let whole = &course.steps[1..course.steps.len() - 1];
        let (least, most) = (
            whole.iter().map(|step| step.packets).min().unwrap(),
            whole.iter().map(|step| step.packets).max().unwrap(),
        );
        assert!(most - least <= 1, "{least} to {most}");
    }

    #[test]
    fn the_steps_of_parts_are_those_of_the_whole_in_any_order() {
        let mut random = rxo_testkit::Random::new(5);
        for _ in 0..200 {
            let spread = 1 << random.below(32);
            let times: Vec<u64> = (0..40).map(|_| random.below(1 << 30) * spread).collect();
            let of = |times: &[u64]| {
                let mut steps = Steps::default();
                times.iter().for_each(|ns| steps.packet(Instant::from_nanos(*ns), 7));
                steps
            };
            let (a, b) = (of(&times[..25]), of(&times[25..]));
            let (mut ab, mut ba) = (a.clone(), b.clone());
            ab.add(&b);
            ba.add(&a);
            assert_eq!((&ab, &ba), (&of(&times), &of(&times)));
            assert!(ab.are_valid());
        }
    }

    #[test]
    fn no_times_break_it() {
        let course = course([0, u64::MAX, u64::MAX].into_iter());
        assert_eq!(course.steps.last().map(|step| step.packets), Some(2));
    }
}
