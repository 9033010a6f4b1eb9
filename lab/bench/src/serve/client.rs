//! Runs the client `wrk`, and parses its output.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rxo_testbed::Namespace;

use crate::live_tcp::Used;

/// The result of one run of the client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) requests: u64,
    pub(super) time: Duration,
    /// Processor time of the whole machine.
    pub(super) processor: Duration,
    /// Processor time of the server, the client and the softirq threads.
    pub(super) own: Duration,
}

/// Requests `url` from the process `server` over persistent `connections`, for `seconds` seconds.
pub(super) fn ask(
    from: &Namespace,
    server: u32,
    url: &str,
    connections: u32,
    seconds: u32,
) -> Result<Asked> {
    let mut command = Command::new("wrk");
    command.args(["--threads", "1", "--timeout", "60s"]);
    command.args(["--connections", &connections.to_string()]);
    command.args(["--duration", &format!("{seconds}s"), url]);
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let (begun, before) = (Instant::now(), Used::read(&[server])?);
    let output = from.run(|| command.output())?.context("cannot run wrk (Debian: wrk)")?;
    let (time, after) = (begun.elapsed(), Used::read(&[server])?);
    let processor = after.by_all.saturating_sub(before.by_all);
    let own = after.by_own.saturating_sub(before.by_own);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "wrk has failed: {said}");
    // wrk prints these lines only after errors.
    ensure!(!said.contains("Non-2xx") && !said.contains("Socket errors"), "wrk: {said}");
    let requests = requests(&said).with_context(|| format!("wrk says {said:?}"))?;
    ensure!(requests > 0, "wrk got no answer: {said}");
    Ok(Asked { requests, time, processor, own })
}

/// Parses the number from a line such as `  12345 requests in 3.00s, 48.11MB read`.
fn requests(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains(" requests in "))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::requests;

    #[test]
    fn the_number_of_requests_is_found() {
        let said = "Running 3s test @ http://x/\n  1 threads\n  75 requests in 3.01s, 1.2MB read\n";
        assert_eq!(requests(said), Some(75));
        assert_eq!(requests("unable to connect"), None);
    }
}
