//! One program, run and watched: how long it took, on how much processor, in how much memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The time and the memory of one run.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Run {
    pub(in super::super) seconds: f64,
    /// The most memory it had, in bytes, as last seen before its end.
    pub(super) peak_bytes: u64,
}

/// Time between two readings of the memory. The mark that is read never falls, so only its last rise can be missed.
const GLANCE: Duration = Duration::from_millis(2);

/// Runs `program` and waits for it.
///
/// # Errors
/// When it cannot be run, or fails.
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
