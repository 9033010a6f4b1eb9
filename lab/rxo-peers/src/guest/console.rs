//! The serial port of a guest: commands are sent as lines, and the end of each is reported by a line. Between
//! commands a periodic line shows the guest that this process still runs.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::error::{Context, Result, failed};

/// Line that `init.sh` prints when it has started.
const READY: &str = "rxo-ready";
/// Beginning of the line that `init.sh` prints after each command; the status follows.
const DONE: &str = "rxo-done ";

/// A line that is no command and gets no answer.
const STILL_HERE: &[u8] = b":\n";
/// Interval of the periodic lines. `init.sh` switches the guest off after 120 s without a line.
const BETWEEN: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct Console {
    input: Arc<Mutex<ChildStdin>>,
    /// Received lines; closed when the machine ends.
    lines: Receiver<String>,
    /// Dropping this ends the thread that sends the periodic lines.
    _presence: Sender<()>,
}

impl Console {
    /// Makes the console of a machine whose standard input and output are pipes.
    pub(super) fn new(machine: &mut Child) -> Result<Self> {
        Self::speaking_every(BETWEEN, machine)
    }

    fn speaking_every(interval: Duration, machine: &mut Child) -> Result<Self> {
        let (Some(input), Some(output)) = (machine.stdin.take(), machine.stdout.take()) else {
            return Err(failed("the guest has no console".to_owned()));
        };
        let (sender, lines) = mpsc::channel();
        in_background("lab-guest-console", move || {
            for line in BufReader::new(output).split(b'\n') {
                let Ok(line) = line else { return };
                let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
                if sender.send(line).is_err() {
                    return;
                }
            }
        })?;
        let input = Arc::new(Mutex::new(input));
        let (_presence, ended) = mpsc::channel::<()>();
        let shared = Arc::clone(&input);
        in_background("lab-guest-presence", move || {
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout)
                && write(&shared, STILL_HERE).is_ok()
            {}
        })?;
        Ok(Self { input, lines, _presence })
    }

    pub(super) fn write(&mut self, command: &str) -> Result<()> {
        let written = write(&self.input, format!("{command}\n").as_bytes());
        written.context(|| "the guest has ended".to_owned())
    }

    pub(super) fn wait_for_start(&self, timeout: Duration) -> Result<()> {
        self.lines_until(|line| line.contains(READY), timeout, "start").map(|_| ())
    }

    /// Waits until a command ends. Returns its output and its status.
    pub(super) fn wait_for_end(&self, timeout: Duration) -> Result<(String, String)> {
        let is_end = |line: &str| line.starts_with(DONE);
        let (lines, end) = self.lines_until(is_end, timeout, "end its command")?;
        // The shell begins a new line before it reports the end.
        let text = lines.join("\n");
        Ok((text, end.trim_start_matches(DONE).trim().to_owned()))
    }

    /// Reads lines until `is_last` is true. Returns the lines before that one, and that one.
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

fn in_background(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(|_| ()).context(|| "cannot start the threads of a guest's console".to_owned())
}

fn write(input: &Mutex<ChildStdin>, line: &[u8]) -> io::Result<()> {
    let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
    input.write_all(line)?;
    input.flush()
}

/// Ends the machine, and returns QEMU's standard error in one line.
pub(super) fn complaint(machine: &mut Child) -> String {
    let mut text = String::new();
    let _ = machine.kill();
    let _ = machine.wait();
    if let Some(mut errors) = machine.stderr.take() {
        let _ = errors.read_to_string(&mut text);
    }
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// A machine that echoes its input must receive periodic lines, because an experiment may leave its guest
    /// alone for more than two minutes.
    #[test]
    fn a_guest_without_commands_hears_that_somebody_is_there() {
        let mut command = Command::new("cat");
        let mut machine = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut console = Console::speaking_every(Duration::from_millis(1), &mut machine).unwrap();
        let next = |console: &Console| console.lines.recv_timeout(Duration::from_secs(30)).unwrap();
        assert_eq!([next(&console), next(&console)], [":", ":"]);
        console.write("echo yes").unwrap();
        // Earlier output may come first.
        let heard = (0..30_000).find(|_| next(&console) == "echo yes");
        assert!(heard.is_some(), "the command is lost");
        drop(console);
        // With its input closed the machine ends by itself.
        assert!(machine.wait().unwrap().success());
    }
}
