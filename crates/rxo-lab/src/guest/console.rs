//! The serial port of a guest: commands go in as lines, and each ends with a line of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Context, Result, failed};

/// What `init.sh` prints when it has started.
const READY: &str = "rxo-ready";
/// What it prints after each command, with its status.
const DONE: &str = "rxo-done ";

#[derive(Debug)]
pub(super) struct Console {
    input: ChildStdin,
    /// Lines as they come; closed when the machine ends.
    lines: Receiver<String>,
}

impl Console {
    /// The console of a machine whose standard input and output are pipes.
    pub(super) fn new(machine: &mut Child) -> Result<Self> {
        let (Some(input), Some(output)) = (machine.stdin.take(), machine.stdout.take()) else {
            return Err(failed("the guest has no console".to_owned()));
        };
        let (sender, lines) = mpsc::channel();
        thread::Builder::new()
            .name("lab-guest-console".to_owned())
            .spawn(move || {
                for line in BufReader::new(output).split(b'\n') {
                    let Ok(line) = line else { return };
                    let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            })
            .context(|| "cannot start the thread of a guest's console".to_owned())?;
        Ok(Self { input, lines })
    }

    pub(super) fn write(&mut self, command: &str) -> Result<()> {
        let line = format!("{command}\n");
        let written = self.input.write_all(line.as_bytes()).and_then(|()| self.input.flush());
        written.context(|| "the guest has ended".to_owned())
    }

    pub(super) fn wait_for_start(&self, timeout: Duration) -> Result<()> {
        self.lines_until(|line| line.contains(READY), timeout, "start").map(|_| ())
    }

    /// What a command printed, and its status.
    pub(super) fn wait_for_end(&self, timeout: Duration) -> Result<(String, String)> {
        let is_end = |line: &str| line.starts_with(DONE);
        let (lines, end) = self.lines_until(is_end, timeout, "end its command")?;
        // The shell begins a line before it says that it is done.
        let text = lines.join("\n");
        Ok((text, end.trim_start_matches(DONE).trim().to_owned()))
    }

    /// The lines before the one for which `is_last` is true, and that one.
    fn lines_until(
        &self,
        is_last: impl Fn(&str) -> bool,
        timeout: Duration,
        what: &str,
    ) -> Result<(Vec<String>, String)> {
        let deadline = Instant::now() + timeout;
        let mut lines = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if is_last(&line) => return Ok((lines, line)),
                Ok(line) => lines.push(line),
                Err(error) => {
                    let why = match error {
                        mpsc::RecvTimeoutError::Timeout => format!("in {timeout:?}"),
                        mpsc::RecvTimeoutError::Disconnected => "before it ended".to_owned(),
                    };
                    let last = lines.iter().rev().find(|line| !line.trim().is_empty());
                    let last = last.map_or("nothing", String::as_str);
                    return Err(failed(format!(
                        "the guest did not {what} {why}; the last that it said: {last:?}"
                    )));
                }
            }
        }
    }
}

/// Ends the machine and returns what QEMU wrote to its standard error, in one line.
pub(super) fn complaint(machine: &mut Child) -> String {
    let mut text = String::new();
    let _ = machine.kill();
    let _ = machine.wait();
    if let Some(mut errors) = machine.stderr.take() {
        let _ = errors.read_to_string(&mut text);
    }
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
