//! The processor time that the whole machine has used.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Linux counts in hundredths of a second for programs, whatever it does itself.
const TICK: Duration = Duration::from_millis(10);
/// user, nice and system; irq and softirq, behind idle and iowait (proc(5)).
const BUSY_FIELDS: [usize; 5] = [0, 1, 2, 5, 6];

/// What all cores have used since the start, to 10 ms.
pub(super) fn read() -> Result<Duration> {
    let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    busy(&text).context("/proc/stat has no line for all cores")
}

fn busy(stat: &str) -> Option<Duration> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u32> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
    BUSY_FIELDS.iter().map(|field| Some(TICK * *ticks.get(*field)?)).sum()
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
}
