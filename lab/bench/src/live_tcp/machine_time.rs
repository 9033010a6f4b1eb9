//! Processor time: of the whole machine, and of those that take part.
//!
//! The first is the fair account, if the machine does nothing else. Where it does, the second says more: this
//! process, the processes that it has started, and the kernel's threads for softirqs. It lacks what interrupts do while
//! the machine idles or runs something else.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Linux counts in hundredths of a second for programs, whatever it does itself.
const TICK: Duration = Duration::from_millis(10);
/// user, nice and system; irq and softirq, behind idle and iowait (proc(5)).
const BUSY_FIELDS: [usize; 5] = [0, 1, 2, 5, 6];
/// utime and stime, counted behind the name (proc(5)).
const OWN_FIELDS: [usize; 2] = [11, 12];

/// What has been used since the start, to 10 ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    /// By all cores.
    pub(crate) by_all: Duration,
    /// By those that take part.
    pub(crate) by_own: Duration,
}

impl Used {
    /// Reads it. Beside this process `others` take part, which were not waited for.
    pub(crate) fn read(others: &[u32]) -> Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        let by_all = busy(&text).context("/proc/stat has no line for all cores")?;
        let names = others.iter().map(u32::to_string).chain(["self".to_owned()]);
        let by_own =
            names.chain(softirq_threads()?).map(|name| of_process(&name)).sum::<Result<_>>()?;
        Ok(Self { by_all, by_own })
    }
}

fn of_process(name: &str) -> Result<Duration> {
    let path = format!("/proc/{name}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    own(&stat).with_context(|| format!("{path} has no times"))
}

/// The kernel has one for each core, and none comes or goes.
fn softirq_threads() -> Result<Vec<String>> {
    let names = fs::read_dir("/proc").context("cannot list /proc")?.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        name.starts_with("ksoftirqd/").then(|| entry.file_name().into_string().ok()).flatten()
    });
    Ok(names.collect())
}

fn busy(stat: &str) -> Option<Duration> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    sum(line, &BUSY_FIELDS)
}

fn own(stat: &str) -> Option<Duration> {
    // The name may have spaces and brackets.
    sum(stat.rsplit_once(')')?.1, &OWN_FIELDS)
}

fn sum(line: &str, fields: &[usize]) -> Option<Duration> {
    let all: Vec<_> = line.split_whitespace().collect();
    fields.iter().map(|field| Some(TICK * all.get(*field)?.parse().ok()?)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_and_what_a_hypervisor_took_are_not_use() {
        let stat = "cpu  10 20 30 4000 500 6 7 800 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy(stat), Some(Duration::from_millis(730)));
        assert_eq!(busy("cpu  1 2"), None);
    }

    #[test]
    fn the_name_of_a_process_may_be_anything() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 100 200 0 0 10 20 3 4 20 0 1 0";
        assert_eq!(own(stat), Some(Duration::from_millis(300)));
        assert_eq!(own("7 (a) S 1"), None);
    }
}
