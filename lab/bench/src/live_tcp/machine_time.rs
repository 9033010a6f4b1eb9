//! Processor time of the whole machine, and of the participating processes.
//!
//! The first is the fair measure if the machine is otherwise idle. If it is not, the second is more precise:
//! this process, its children, and the kernel's softirq threads. It lacks the time of interrupts that hit an
//! idle core or another program.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Unit of processor time in /proc: Linux reports hundredths of a second, whatever its own tick is.
const TICK: Duration = Duration::from_millis(10);
/// Indices of user, nice, system, irq and softirq among the fields of a cpu line (proc(5)).
const BUSY_FIELDS: [usize; 5] = [0, 1, 2, 5, 6];
/// Indices of utime and stime, and of those of ended children, counted after the name (proc(5)).
const OWN_FIELDS: [usize; 4] = [11, 12, 13, 14];

/// Processor time used since the start, with a resolution of 10 ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    /// Time used on all cores.
    pub(crate) by_all: Duration,
    /// Time used by the participating processes.
    pub(crate) by_own: Duration,
}

impl Used {
    /// Reads the time of all cores, and that of the participants: this process with its ended children, the
    /// softirq threads, and the running processes `others`.
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

/// Returns the ids of the softirq threads, of which the kernel has a fixed one per core.
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
    // The name may contain spaces and brackets.
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
        assert_eq!(own(stat), Some(Duration::from_millis(370)));
        assert_eq!(own("7 (a) S 1"), None);
    }
}
