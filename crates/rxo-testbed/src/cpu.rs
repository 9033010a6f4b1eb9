//! Measures processor time, by thread and by core.
//!
//! Sampling `/proc/stat` misses up to a quarter of short work. The meter therefore reads the run time that the
//! scheduler counts for each thread, and for the `ksoftirqd` threads, which do deferred work. Work that the
//! kernel does in the context of a running thread (the other end of a veth, TCP's receive path) counts as that
//! thread's time. With the sender on core 0 and all receivers on core 1, the total is the cost of a path. The
//! values of [`CoreUse`] show on which core the time was spent, but not for which process.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use crate::error::{Context, Result};
use crate::sys;

/// A meter of processor time. The meter counts the selected threads of this process and the selected other
/// processes, each under a name. It always counts `ksoftirqd` and the rest of this process.
#[derive(Clone, Debug)]
pub struct CpuMeter {
    parts: Vec<(String, Part)>,
    ksoftirqd: Vec<u32>,
    cores: Vec<usize>,
}

#[derive(Clone, Debug)]
enum Part {
    /// Threads of this process, by their ids.
    Threads(Vec<u32>),
    /// Another process with all its threads, by its id.
    Process(u32),
}

/// The counters of processor time at one instant.
#[derive(Clone, Debug)]
pub struct CpuReading {
    parts: Vec<(String, Duration)>,
    ksoftirqd: Duration,
    rest: Duration,
    cores: Vec<CoreReading>,
}

/// The counters of one core at one instant.
#[derive(Clone, Copy, Debug)]
struct CoreReading {
    core: usize,
    at: Instant,
    ksoftirqd: Duration,
    idle: Duration,
}

/// The use of one core between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreUse {
    /// The number of the core, from 0.
    pub core: usize,
    /// The time of the core's `ksoftirqd` thread, which does deferred work.
    pub ksoftirqd: Duration,
    /// The time in which the core was not idle, in steps of 10 ms, for all programs together. The time includes
    /// interrupts while nothing else ran, which belong to no thread. On a quiet machine, this time is the total
    /// cost of all work that is bound to this core.
    pub busy: Duration,
}

/// The processor time that was used between two readings.
#[derive(Clone, Debug, Default)]
pub struct CpuUse {
    /// The time of each thread or process that the meter counts by name, in the order of their selection.
    pub parts: Vec<(String, Duration)>,
    /// The time of the `ksoftirqd` threads of all cores. These threads serve the whole machine, so the network
    /// use of other processes is included. 0 if the threads are not visible (in a PID namespace).
    pub ksoftirqd: Duration,
    /// The time of all other threads of this process.
    pub rest: Duration,
    /// The use of each selected core, in the order of selection.
    pub cores: Vec<CoreUse>,
}

impl Default for CpuMeter {
    fn default() -> Self {
        Self::new()
    }
}

impl CpuMeter {
    /// Creates a meter that counts `ksoftirqd` and this process.
    #[must_use]
    pub fn new() -> Self {
        Self { parts: Vec::new(), ksoftirqd: named("ksoftirqd/"), cores: Vec::new() }
    }

    /// Returns a meter that also counts `threads` of this process separately, under the name `name`.
    #[must_use]
    pub fn threads(mut self, name: &str, threads: Vec<u32>) -> Self {
        self.parts.push((name.to_owned(), Part::Threads(threads)));
        self
    }

    /// Returns a meter that also counts another process with all its threads, under the name `name`.
    #[must_use]
    pub fn process(mut self, name: &str, process: u32) -> Self {
        self.parts.push((name.to_owned(), Part::Process(process)));
        self
    }

    /// Returns a meter that also reads the core with this number.
    #[must_use]
    pub fn core(mut self, core: usize) -> Self {
        self.cores.push(core);
        self
    }

    /// Reads all counters. Takes some microseconds for each thread.
    ///
    /// # Errors
    /// If a selected thread or process has ended.
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
        let cores = self.read_cores()?;
        // The threads continued to run while they were read one by one, so their sum may exceed the total.
        Ok(CpuReading { parts, ksoftirqd, rest: whole.saturating_sub(own), cores })
    }

    fn read_cores(&self) -> Result<Vec<CoreReading>> {
        if self.cores.is_empty() {
            return Ok(Vec::new());
        }
        let text = fs::read_to_string(STAT).context(|| format!("cannot read {STAT}"))?;
        let at = Instant::now();
        let of = |&core: &usize| {
            let name = format!("ksoftirqd/{core}");
            let is_its = |thread: &&u32| comm(**thread).is_some_and(|comm| comm.trim() == name);
            let ksoftirqd = self.ksoftirqd.iter().find(is_its).copied().and_then(run_time);
            let idle = idle(&text, core)
                .ok_or_else(|| io::ErrorKind::NotFound.into())
                .context(|| format!("{STAT} does not know core {core}"))?;
            Ok(CoreReading { core, at, ksoftirqd: ksoftirqd.unwrap_or_default(), idle })
        };
        self.cores.iter().map(of).collect()
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
    /// Returns the processor time that was used since the reading `earlier` of the same meter.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> CpuUse {
        let parts = self.parts.iter().zip(&earlier.parts);
        CpuUse {
            parts: parts
                .map(|((name, now), (_, then))| (name.clone(), now.saturating_sub(*then)))
                .collect(),
            ksoftirqd: self.ksoftirqd.saturating_sub(earlier.ksoftirqd),
            rest: self.rest.saturating_sub(earlier.rest),
            cores: self
                .cores
                .iter()
                .zip(&earlier.cores)
                .map(|(now, then)| now.since(then))
                .collect(),
        }
    }
}

impl CoreReading {
    fn since(&self, earlier: &Self) -> CoreUse {
        let idle = self.idle.saturating_sub(earlier.idle);
        CoreUse {
            core: self.core,
            ksoftirqd: self.ksoftirqd.saturating_sub(earlier.ksoftirqd),
            busy: (self.at - earlier.at).saturating_sub(idle),
        }
    }
}

impl CpuUse {
    /// Returns the sum of all named parts, `ksoftirqd` and the rest of this process.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.parts.iter().map(|(_, time)| *time).sum::<Duration>() + self.ksoftirqd + self.rest
    }

    /// Returns the time of the threads or the process with this name; `None` if the meter counts none with
    /// this name.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<Duration> {
        self.parts.iter().find(|(part, _)| part == name).map(|(_, time)| *time)
    }
}

/// Returns the run time of a thread as the scheduler counts it; `None` if the thread has ended.
fn run_time(thread: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Returns the number of times that the thread with this id has slept and was woken; `None` if the thread has
/// ended.
#[must_use]
pub fn times_slept(thread: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let mut lines = text.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    count.trim().parse().ok()
}

/// Returns the ids of the processes whose names begin with `name`. Kernel threads are included.
pub(crate) fn named(name: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| number(&entry));
    numbers.filter(|&process| comm(process).is_some_and(|comm| comm.starts_with(name))).collect()
}

fn comm(process: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{process}/comm")).ok()
}

/// Returns the idle time of a core, including the time of waiting for devices; `None` if `stat` does not
/// contain the core. The idle time is not sampled: the kernel records the instants at which idling begins and
/// ends, except for interrupts, and reports the time in hundredths of a second.
fn idle(stat: &str, core: usize) -> Option<Duration> {
    let name = format!("cpu{core}");
    let mut columns = stat
        .lines()
        .map(str::split_whitespace)
        .find_map(|mut columns| (columns.next() == Some(name.as_str())).then_some(columns))?;
    // user nice system idle iowait …
    let idle: u64 = columns.nth(3)?.parse().ok()?;
    let waiting: u64 = columns.next()?.parse().ok()?;
    Some(Duration::from_millis(10) * u32::try_from(idle + waiting).unwrap_or(u32::MAX))
}

fn number(entry: &fs::DirEntry) -> Option<u32> {
    entry.file_name().to_str()?.parse().ok()
}

const STAT: &str = "/proc/stat";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_found_by_its_whole_name() {
        let stat = "cpu  9 9 9 9 9\ncpu1 1 2 3 400 5 6\ncpu10 1 2 3 7 0 6\nintr 5\n";
        assert_eq!(idle(stat, 1), Some(Duration::from_millis(4_050)));
        assert_eq!(idle(stat, 10), Some(Duration::from_millis(70)));
        assert_eq!(idle(stat, 2), None);
    }
}
