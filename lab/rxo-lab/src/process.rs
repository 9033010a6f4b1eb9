//! Runs a process of this program that prints its measurements as lines of JSON.

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::mem;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;

/// A process of this program. Dropping this ends the process.
pub(crate) struct Process {
    /// Name of the process in errors.
    name: &'static str,
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the process, and waits until it prints "ready".
    pub(crate) fn start(name: &'static str, command: &mut Command) -> Result<Self> {
        let mut process = Self::spawn(name, command)?;
        process.wait_for("ready")?;
        Ok(process)
    }

    /// Starts the process.
    pub(crate) fn spawn(name: &'static str, command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let lines = child.stdout.take().with_context(|| format!("{name} has no output"))?;
        Ok(Self { name, child, lines: BufReader::new(lines) })
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the process id in the form that signals need; `None` if it is out of range.
    pub(crate) fn pid(&self) -> Option<Pid> {
        i32::try_from(self.id()).ok().and_then(Pid::from_raw)
    }

    /// Waits until the process ends, and returns its exit code; `None` if a signal ended it.
    pub(crate) fn exit_code(&mut self) -> Result<Option<i32>> {
        Ok(self.child.wait()?.code())
    }

    /// Returns `true` if the process has ended, whatever its exit code.
    pub(crate) fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits until the process prints `word`.
    pub(crate) fn wait_for(&mut self, word: &str) -> Result<()> {
        let said: String = self.line()?;
        ensure!(said == word, "{} said {said} instead of {word}", self.name);
        Ok(())
    }

    /// Starts the next step of the process, by a line on its standard input.
    pub(crate) fn start_step(&mut self) -> Result<()> {
        let name = self.name;
        let input = self.child.stdin.as_mut().with_context(|| format!("{name} has no input"))?;
        input.write_all(b"\n").with_context(|| format!("{name} reads no input"))
    }

    /// Waits until the process ends, and returns its measurement.
    pub(crate) fn finish<T: DeserializeOwned>(&mut self) -> Result<T> {
        let measured = self.line()?;
        self.wait()?;
        Ok(measured)
    }

    /// Interrupts the process, and returns the last line that it prints.
    pub(crate) fn interrupt<T: DeserializeOwned>(mut self) -> Result<T> {
        self.signal_interrupt();
        let mut text = String::new();
        self.lines.read_to_string(&mut text)?;
        self.wait()?;
        self.value(text.lines().last().unwrap_or_default())
    }

    /// Discards the further output of the process.
    pub(crate) fn ignore_output(&mut self) -> Result<()> {
        let (nothing, _) = io::pipe().context("cannot make a pipe")?;
        let nothing = BufReader::new(ChildStdout::from(OwnedFd::from(nothing)));
        let mut lines = mem::replace(&mut self.lines, nothing);
        // The thread ends with the process.
        thread::spawn(move || io::copy(&mut lines, &mut io::sink()));
        Ok(())
    }

    /// Interrupts the process, and waits until it ends.
    pub(crate) fn end(mut self) -> Result<()> {
        self.signal_interrupt();
        self.wait()
    }

    /// Interrupts the process, and returns its standard error and exit code in one line.
    pub(crate) fn last_words(mut self) -> String {
        self.signal_interrupt();
        let text = self.standard_error();
        let code = self.child.wait().ok().and_then(|status| status.code());
        format!("it ended with code {code:?} and said: {}", text.trim_end().replace('\n', " | "))
    }

    fn signal_interrupt(&self) {
        if let Some(process) = self.pid() {
            // The process may have ended already, so the error is ignored.
            _ = kill_process(process, Signal::INT);
        }
    }

    fn wait(&mut self) -> Result<()> {
        let status = self.child.wait()?;
        if !status.success() {
            let said = self.complaint();
            bail!("{} ended with {status}: {said}", self.name);
        }
        Ok(())
    }

    /// Reads and parses the next line that the process prints.
    pub(crate) fn line<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        if line.is_empty() {
            let said = self.complaint();
            bail!("{} ended early: {said}", self.name);
        }
        self.value(&line)
    }

    fn value<T: DeserializeOwned>(&self, line: &str) -> Result<T> {
        serde_json::from_str(line).with_context(|| format!("{} printed no JSON", self.name))
    }

    /// Returns the last line of the process's standard error.
    fn complaint(&mut self) -> String {
        let text = self.standard_error();
        text.trim_end().lines().last().unwrap_or("it said nothing").to_owned()
    }

    fn standard_error(&mut self) -> String {
        let mut text = String::new();
        if let Some(said) = &mut self.child.stderr {
            // Unreadable output counts as empty.
            _ = said.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process has usually ended already, so errors are ignored.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Returns the path of this program.
pub(crate) fn program() -> Result<PathBuf> {
    env::current_exe().context("cannot find the program of this process")
}
