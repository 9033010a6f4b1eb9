//! Processor time, by who used it.
//!
//! `/proc/stat` samples and misses up to a quarter of short work. What is counted here is the
//! scheduler's own sum for each thread, and `ksoftirqd` where the kernel put work off. Work that
//! the kernel does on the back of a running thread (a veth's other end, TCP's receive path) is in
//! that thread's time: with the sender on core 0 and everything that receives on core 1, a path's
//! cost is the total. The split says on which core, not on whose behalf.

use std::fs;
use std::time::Duration;

use crate::error::{Context, Result};
use crate::sys;

/// What to count: threads of this process by part, other processes, and always `ksoftirqd` and
/// the rest of this process.
#[derive(Clone, Debug)]
pub struct CpuMeter {
    parts: Vec<(String, Part)>,
    ksoftirqd: Vec<u32>,
}

#[derive(Clone, Debug)]
enum Part {
    /// Threads of this process.
    Threads(Vec<u32>),
    /// Another process with all its threads.
    Process(u32),
}

/// All counters at one instant.
#[derive(Clone, Debug)]
pub struct CpuReading {
    parts: Vec<(String, Duration)>,
    ksoftirqd: Duration,
    rest: Duration,
}

/// Processor time used between two readings.
#[derive(Clone, Debug, Default)]
pub struct CpuUse {
    /// By part, in the order in which the meter was given them.
    pub parts: Vec<(String, Duration)>,
    /// The kernel's threads for work put off, on all cores. The whole machine's: whatever else
    /// uses the network at the time is in it. 0 where they cannot be seen (a PID namespace).
    pub ksoftirqd: Duration,
    /// The other threads of this process.
    pub rest: Duration,
}

impl Default for CpuMeter {
    fn default() -> Self {
        Self::new()
    }
}

impl CpuMeter {
    /// Counts `ksoftirqd` and this process.
    #[must_use]
    pub fn new() -> Self {
        Self { parts: Vec::new(), ksoftirqd: find_ksoftirqd() }
    }

    /// Counts these threads of this process apart, as `name`.
    #[must_use]
    pub fn threads(mut self, name: &str, threads: Vec<u32>) -> Self {
        self.parts.push((name.to_owned(), Part::Threads(threads)));
        self
    }

    /// Counts another process too, with all its threads, as `name`.
    #[must_use]
    pub fn process(mut self, name: &str, process: u32) -> Self {
        self.parts.push((name.to_owned(), Part::Process(process)));
        self
    }

    /// Reads all counters. Costs some microseconds for each thread.
    ///
    /// # Errors
    /// When a thread or process that was named has ended.
    pub fn read(&self) -> Result<CpuReading> {
        let whole = sys::process_cpu_time().context(|| "cannot read the processor time".into())?;
        let mut own = Duration::ZERO;
        let mut parts = Vec::with_capacity(self.parts.len());
        for (name, part) in &self.parts {
            let time = part.time(name)?;
            if matches!(part, Part::Threads(_)) {
                own += time;
            }
            parts.push((name.clone(), time));
        }
        let ksoftirqd = self.ksoftirqd.iter().filter_map(|&thread| run_time(thread)).sum();
        // The threads ran on while they were read one after the other.
        Ok(CpuReading { parts, ksoftirqd, rest: whole.saturating_sub(own) })
    }
}

impl Part {
    fn time(&self, name: &str) -> Result<Duration> {
        match self {
            Self::Threads(threads) => threads.iter().try_fold(Duration::ZERO, |sum, &thread| {
                let time = sys::thread_cpu_time(thread);
                time.map(|time| sum + time).context(|| {
                    format!("thread {thread} ({name}) has ended; measure while it runs")
                })
            }),
            Self::Process(process) => {
                let threads = fs::read_dir(format!("/proc/{process}/task")).context(|| {
                    format!("process {process} ({name}) has ended; measure while it runs")
                })?;
                let numbers = threads.flatten().filter_map(|entry| number(&entry));
                Ok(numbers.filter_map(run_time).sum())
            }
        }
    }
}

impl CpuReading {
    /// What was used since `earlier`, a reading of the same meter.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> CpuUse {
        let parts = self.parts.iter().zip(&earlier.parts);
        CpuUse {
            parts: parts
                .map(|((name, now), (_, then))| (name.clone(), now.saturating_sub(*then)))
                .collect(),
            ksoftirqd: self.ksoftirqd.saturating_sub(earlier.ksoftirqd),
            rest: self.rest.saturating_sub(earlier.rest),
        }
    }
}

impl CpuUse {
    /// Everything: all parts, `ksoftirqd` and the rest of this process.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.parts.iter().map(|(_, time)| *time).sum::<Duration>() + self.ksoftirqd + self.rest
    }

    /// The time of one part; `None` when the meter has no part of this name.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<Duration> {
        self.parts.iter().find(|(part, _)| part == name).map(|(_, time)| *time)
    }
}

/// The time a thread has run, as the scheduler counts it; `None` once it has ended.
fn run_time(thread: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn find_ksoftirqd() -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| number(&entry));
    let is_ksoftirqd = |process: &u32| {
        fs::read_to_string(format!("/proc/{process}/comm"))
            .is_ok_and(|name| name.starts_with("ksoftirqd/"))
    };
    numbers.filter(is_ksoftirqd).collect()
}

fn number(entry: &fs::DirEntry) -> Option<u32> {
    entry.file_name().to_str()?.parse().ok()
}
