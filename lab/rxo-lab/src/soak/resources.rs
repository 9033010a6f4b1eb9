//! Memory, descriptors and threads of the processes of rxo, and their growth.

use std::fs;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::trend::{LEAST_POINTS, slope};

/// Resources of a process at one instant.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sample {
    /// Name of the rxo process.
    pub(super) process: &'static str,
    /// Seconds since the start.
    pub(super) at_s: f64,
    /// Anonymous memory of the process (`RssAnon`). File-backed memory varies with the system's cache.
    pub(super) memory_kib: u64,
    /// Peak resident memory, with file-backed pages.
    pub(super) peak_kib: u64,
    pub(super) descriptors: u64,
    pub(super) threads: u64,
}

/// The course of one quantity of a process after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Course {
    pub(super) process: &'static str,
    pub(super) what: &'static str,
    /// Value at the end of the warm-up; the next field is the value at the end.
    pub(super) first: f64,
    pub(super) last: f64,
    /// Growth that is statistically certain, from the lower bound of the slope's interval. `None` for too few
    /// samples.
    pub(super) growth: Option<f64>,
    /// Largest growth that passes.
    pub(super) most: f64,
}

impl Course {
    pub(super) fn is_flat(&self) -> bool {
        self.growth.is_none_or(|growth| growth <= self.most)
    }
}

/// A quantity: its name, its value in a sample, and the growth that passes in a soak.
type Quantity = (&'static str, fn(&Sample) -> u64, f64);

/// Measured quantities. Memory may grow by a histogram or table that is first used late, descriptors and
/// threads by less than two.
const QUANTITIES: [Quantity; 3] = [
    ("memory, KiB", |sample| sample.memory_kib, 512.0),
    ("descriptors", |sample| sample.descriptors, 1.0),
    ("threads", |sample| sample.threads, 1.0),
];
/// Share of the time in which caches and pools fill.
const WARM_UP: f64 = 1.0 / 3.0;

/// Returns the course of every quantity of every process. `samples` must be in the order of time.
pub(super) fn courses(samples: &[Sample]) -> Vec<Course> {
    let end = samples.last().map_or(0.0, |sample| sample.at_s);
    let warm: Vec<&Sample> = samples.iter().filter(|sample| sample.at_s >= end * WARM_UP).collect();
    let mut processes: Vec<&'static str> = warm.iter().map(|sample| sample.process).collect();
    processes.sort_unstable();
    processes.dedup();
    let course = |process, (what, value, most): Quantity| {
        let of = warm.iter().filter(|sample| sample.process == process);
        let points: Vec<_> = of.map(|sample| (sample.at_s, value(sample) as f64)).collect();
        let (first, last) = (points.first()?, points.last()?);
        let growth = slope(&points).map(|slope| slope.low * (last.0 - first.0));
        Some(Course { process, what, first: first.1, last: last.1, growth, most })
    };
    let all = processes.into_iter().flat_map(|process| QUANTITIES.map(|one| (process, one)));
    all.filter_map(|(process, one)| course(process, one)).collect()
}

/// Fewest rounds for a verdict, warm-up included.
pub(super) const LEAST_ROUNDS: usize = LEAST_POINTS * 3 / 2;

/// Samples the resources of a process.
pub(super) fn sample(process: &'static str, number: u32, at_s: f64) -> Result<Sample> {
    let status = fs::read_to_string(format!("/proc/{number}/status"))
        .with_context(|| format!("{process} has ended"))?;
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|line| line.split_whitespace().next());
        word.and_then(|word| word.parse().ok()).with_context(|| format!("{process}: no {name}"))
    };
    let descriptors = fs::read_dir(format!("/proc/{number}/fd"))
        .with_context(|| format!("cannot count the descriptors of {process}"))?;
    Ok(Sample {
        process,
        at_s,
        memory_kib: value("RssAnon:")?,
        peak_kib: value("VmHWM:")?,
        descriptors: descriptors.count() as u64,
        threads: value("Threads:")?,
    })
}

/// Returns the three processes of `rxo run` with the keeper's id `keeper`: keeper, worker and restorer.
pub(super) fn of_run(keeper: u32) -> Result<[(&'static str, u32); 3]> {
    let mut found = [("keeper", Some(keeper)), ("worker", None), ("restorer", None)];
    let entries = fs::read_dir("/proc").context("/proc")?;
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for number in numbers.filter(|&number| parent(number) == Some(keeper)) {
        let name = fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
        match name.trim() {
            "rxo-restorer" => found[2].1 = Some(number),
            "rxo-remover" => {}
            _ => found[1].1 = Some(number),
        }
    }
    let [Some(a), Some(b), Some(c)] = found.map(|(_, number)| number) else {
        bail!("rxo run is not three processes: {found:?}");
    };
    Ok([(found[0].0, a), (found[1].0, b), (found[2].0, c)])
}

/// Returns the parent of a process: the second field after the name in brackets.
fn parent(process: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn courses_of(
        memory_kib: impl Fn(u64) -> u64,
        descriptors: impl Fn(u64) -> u64,
    ) -> Vec<Course> {
        let sample = |round: u64| Sample {
            process: "worker",
            at_s: 10.0 * round as f64,
            memory_kib: memory_kib(round),
            peak_kib: 0,
            descriptors: descriptors(round),
            threads: 3,
        };
        courses(&(1..=60).map(sample).collect::<Vec<_>>())
    }

    fn flat(courses: &[Course]) -> Vec<bool> {
        courses.iter().map(Course::is_flat).collect()
    }

    #[test]
    fn what_fills_in_the_warm_up_is_flat() {
        let courses = courses_of(|round| 9_000 + 500 * round.min(15), |_| 20);
        assert_eq!(flat(&courses), [true; 3]);
        assert_eq!((courses[0].what, courses[0].growth), ("memory, KiB", Some(0.0)));
    }

    #[test]
    fn a_leak_is_no_flat_course() {
        assert_eq!(flat(&courses_of(|round| 9_000 + 20 * round, |_| 20)), [false, true, true]);
        assert_eq!(flat(&courses_of(|_| 9_000, |round| 20 + round / 8)), [true, false, true]);
    }

    #[test]
    fn of_few_samples_nothing_is_said() {
        let sample = sample("this", std::process::id(), 1.0).unwrap();
        assert!(sample.memory_kib > 0 && sample.descriptors > 2 && sample.threads > 0);
        let courses = courses(&[sample]);
        assert_eq!((courses[0].growth, courses[0].is_flat()), (None, true));
    }

    #[test]
    fn a_process_that_has_ended_is_named() {
        let said = sample("worker", u32::MAX, 0.0).unwrap_err().to_string();
        assert_eq!(said, "worker has ended");
    }
}
