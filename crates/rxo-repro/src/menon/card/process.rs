//! A process of this program that says what it measured, a line of JSON each.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;

/// A process of this program. Dropping it ends it.
pub(super) struct Process {
    /// What it is called in errors.
    name: &'static str,
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it, and waits until it says that it is ready.
    pub(super) fn start(name: &'static str, command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start the {name}"))?;
        let lines = child.stdout.take().with_context(|| format!("the {name} has no output"))?;
        let mut process = Self { name, child, lines: BufReader::new(lines) };
        process.wait_for("ready")?;
        Ok(process)
    }

    /// Waits until it says `word`.
    pub(super) fn wait_for(&mut self, word: &str) -> Result<()> {
        let said: String = self.line()?;
        ensure!(said == word, "the {} said {said} instead of {word}", self.name);
        Ok(())
    }

    /// Tells it to begin the next of its steps.
    pub(super) fn tell(&mut self) -> Result<()> {
        let name = self.name;
        let input =
            self.child.stdin.as_mut().with_context(|| format!("the {name} has no input"))?;
        input.write_all(b"\n").with_context(|| format!("the {name} does not listen"))
    }

    /// Waits for its end, and returns what it measured.
    pub(super) fn finish<T: DeserializeOwned>(&mut self) -> Result<T> {
        let measured = self.line()?;
        let status = self.child.wait()?;
        if !status.success() {
            let said = self.complaint();
            bail!("the {} ended with {status}: {said}", self.name);
        }
        Ok(measured)
    }

    fn line<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        if line.is_empty() {
            let said = self.complaint();
            bail!("the {} did not finish: {said}", self.name);
        }
        serde_json::from_str(&line).with_context(|| format!("the {} printed no JSON", self.name))
    }

    /// The last line that it said.
    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(said) = &mut self.child.stderr {
            // What cannot be read says nothing.
            _ = said.read_to_string(&mut text);
        }
        text.trim_end().lines().last().unwrap_or("it said nothing").to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended, unless something else failed.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
