//! `rxo guest` as a process of its own, as a user starts it.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use rxo_lab::Namespace;
use serde_json::Value;

/// A running `rxo guest`. Dropping it ends it.
pub(super) struct RxoGuest {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl RxoGuest {
    /// Starts it in `network` on the interface `nic`, and waits until it is at work.
    ///
    /// # Errors
    /// If it ends instead; the message is its own.
    pub(super) fn start(network: &Namespace, nic: &str, guests: &[String]) -> Result<Self> {
        let program = env::current_exe().context("cannot find the program of this process")?;
        let mut command = Command::new(program);
        command.args(["guest", "--json", "--stats", "1s", "--nic", &format!("packet:{nic}")]);
        for guest in guests {
            command.args(["--vhost", guest]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = network.run(|| command.spawn())?.context("cannot start rxo guest")?;
        let lines = child.stdout.take().context("rxo guest has no output")?;
        let mut rxo = Self { child, lines: BufReader::new(lines) };
        let mut first = String::new();
        rxo.lines.read_line(&mut first)?;
        if first.is_empty() {
            bail!("rxo guest did not start: {}", rxo.complaint());
        }
        Ok(rxo)
    }

    /// Ends it and returns its totals.
    ///
    /// # Errors
    /// If it failed; the message is its own.
    pub(super) fn end(mut self) -> Result<Value> {
        self.interrupt();
        let mut text = String::new();
        self.lines.read_to_string(&mut text)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("rxo guest ended with {status}: {}", self.complaint());
        }
        let last = text.lines().last().context("rxo guest printed no totals")?;
        serde_json::from_str(last).context("rxo guest printed no JSON")
    }

    fn interrupt(&self) {
        if let Some(process) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended already.
            _ = kill_process(process, Signal::INT);
        }
    }

    /// The last line that it printed on standard error.
    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            // Without its words there is nothing more to say.
            _ = errors.read_to_string(&mut text);
        }
        text.lines().last().unwrap_or("it said nothing").to_owned()
    }
}

impl Drop for RxoGuest {
    fn drop(&mut self) {
        self.interrupt();
        // Both fail only after it has ended.
        _ = self.child.wait();
    }
}
