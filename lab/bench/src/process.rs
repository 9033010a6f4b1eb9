//! The processes that benchmarks start, and what the system tells of them.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use rxo_testbed::Namespace;

/// A process in a namespace. Dropping this interrupts it, and kills it after a timeout.
pub(crate) struct Process {
    child: Child,
    name: String,
    /// Thread that reads the process's output.
    output: Option<JoinHandle<std::io::Result<String>>>,
}

impl Process {
    pub(crate) fn start(namespace: &Namespace, mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let name = format!("{command:?}");
        let mut child =
            namespace.run(|| command.spawn())?.with_context(|| format!("cannot run {name}"))?;
        let output = child.stdout.take().map(|mut stdout| {
            thread::spawn(move || {
                let mut text = String::new();
                stdout.read_to_string(&mut text).map(|_| text)
            })
        });
        Ok(Self { child, name, output })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails if the process has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("{} has ended: {status}", self.name),
            None => Ok(()),
        }
    }

    /// Waits until the process ends, and returns its output.
    pub(crate) fn end(mut self) -> Result<String> {
        if is_running_after(&mut self.child, TIMEOUT) {
            bail!("{} does not end", self.name);
        }
        let status = self.child.wait()?;
        if !status.success() {
            bail!("{} has failed: {status}", self.name);
        }
        let output = self.output.take().context("its output was read before")?;
        let text = output.join().map_err(|_| anyhow!("the reader of its output has panicked"))?;
        text.with_context(|| format!("cannot read what {} prints", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        interrupt(&mut self.child);
    }
}

/// Interrupts a process if it still runs, and kills it after a timeout.
pub(crate) fn interrupt(child: &mut Child) {
    if !is_running_after(child, Duration::ZERO) {
        return;
    }
    signal(child, Signal::INT);
    if is_running_after(child, TIMEOUT) {
        // It may have ended meanwhile, so the error is ignored.
        _ = child.kill();
    }
    _ = child.wait();
}

/// Sends a signal. The process may have ended already, so an error is ignored.
pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    _ = pid.map(|pid| kill_process(pid, signal));
}

/// Waits for the end of a process. Returns `true` if it still runs after `time`.
fn is_running_after(child: &mut Child, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Waits until `is_so` returns `true`. `what` names the condition in the error.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) -> Result<()> {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        if Instant::now() > deadline {
            bail!("waited in vain until {what}");
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Returns the ids of a process and of its children.
pub(crate) fn with_children(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let ids = children.split_whitespace().filter_map(|word| word.parse().ok());
    ids.chain([process]).collect()
}

/// Returns the processor time of a process's threads, except threads named `not`.
pub(crate) fn processor_time(process: u32, not: Option<&str>) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let times = threads.filter_map(|thread| {
        let name = fs::read_to_string(thread.path().join("comm")).ok()?;
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let time = text.split_whitespace().next()?.parse().ok()?;
        (Some(name.trim()) != not).then_some(Duration::from_nanos(time))
    });
    times.sum()
}

/// Returns the resident memory of a process, in bytes.
pub(crate) fn resident_bytes(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.with_context(|| format!("{path} has no VmRSS"))? * 1_024)
}

/// Longest time that a process may take to end.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time for anything that a busy machine does late.
const LONG: Duration = Duration::from_secs(120);
