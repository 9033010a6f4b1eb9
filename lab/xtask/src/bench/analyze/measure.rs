//! Runs one program and measures its wall time, processor time and peak memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The time and the memory of one run.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Run {
    pub(in super::super) seconds: f64,
    /// Peak memory in bytes, from the last sample before the program's end.
    pub(super) peak_bytes: u64,
}

/// Time between two samples of the peak memory. The peak never falls, so only a rise after the last sample
/// can be missed.
const GLANCE: Duration = Duration::from_millis(2);

/// Runs `program` and waits for it.
///
/// # Errors
/// The program cannot be run, or fails.
pub(in super::super) fn run(program: &Path, arguments: &[String]) -> Result<Run> {
    let started = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let mut peak_bytes = 0;
    let status = loop {
        peak_bytes = peak_bytes.max(peak(child.id()));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(GLANCE);
    };
    let seconds = started.elapsed().as_secs_f64();
    if !status.success() {
        bail!("{} {} ended with {status}", program.display(), arguments.join(" "));
    }
    Ok(Run { seconds, peak_bytes })
}

fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok());
    kilobytes.unwrap_or(0_u64) * 1_024
}
