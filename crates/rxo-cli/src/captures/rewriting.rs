//! A capture that `rxo coalesce` or `rxo expand` rewrites into another file.

use std::fs::File;
use std::path::Path;

use anyhow::{Error, Result};
use rxo_capture::{Batches, Capture, CaptureError, Record, Step, WriteError};
use rxo_console::output_file::{OutputFile, Report};
use rxo_trace::rewrite::RewriteError;

use super::{Input, Progress, open, partial_reason};
use crate::exit::usage;
use crate::stop;

/// An input capture, and the output file that is written from that capture.
pub(crate) struct Rewriting<'i> {
    input: &'i Input,
    batches: Batches,
    step: Step,
    target: OutputFile,
}

impl<'i> Rewriting<'i> {
    /// Opens the capture `input` and creates the file `output`. With `needs_packets`, returns an error if
    /// reading ends early, before the first packet.
    ///
    /// # Errors
    /// If the capture cannot be read, or the file cannot be created.
    pub(crate) fn begin(
        input: &'i Input,
        output: &Path,
        needs_packets: bool,
    ) -> Result<(Self, File)> {
        let (batches, step) = open(input, &stop::on_request()?)?;
        if needs_packets
            && batches.records.is_empty()
            && let Some(why) = partial_reason(&step)
        {
            return Err(Error::msg(why));
        }
        let (target, file) = OutputFile::create(output, &[input.path()])?;
        Ok((Self { input, batches, step, target }, file))
    }

    pub(crate) const fn capture(&self) -> &Capture {
        &self.batches.capture
    }

    /// Returns the name of the output file, for messages.
    pub(crate) fn output(&self) -> String {
        self.target.name().to_owned()
    }

    /// Returns the reason why the capture was not read to its end; `None` if the capture was read to its end.
    pub(crate) fn missing(&self) -> Option<String> {
        partial_reason(&self.step)
    }

    /// Returns the error at which reading the capture ended; `None` if there was none.
    pub(crate) const fn damage(&self) -> Option<&CaptureError> {
        match &self.step {
            Step::Damaged(error) => Some(error),
            Step::More | Step::Over | Step::Stopped(_) => None,
        }
    }

    /// Reads the capture to its end, and calls `take` with each batch.
    ///
    /// # Errors
    /// The error that `take` returns; reading then stops.
    pub(crate) fn read(
        &mut self,
        mut take: impl FnMut(&Capture, &mut Vec<Record>) -> Result<(), RewriteError>,
    ) -> Result<()> {
        let progress = Progress::over(std::slice::from_ref(self.input));
        progress.begin(self.input);
        loop {
            let Batches { capture, records, .. } = &mut self.batches;
            let taken = take(capture, records);
            taken.map_err(|error| self.with_name(error))?;
            if !matches!(self.step, Step::More) {
                progress.finish();
                return Ok(());
            }
            progress.at(self.batches.capture.position());
            self.step = self.batches.step();
        }
    }

    /// Renames the output file to its final name. Returns the stream to which the summary may be printed.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn complete(self, file: &File) -> Result<Report> {
        self.target.complete(file)
    }

    /// Adds the name of the file, or of the flag, that caused `error` to the error.
    pub(crate) fn with_name(&self, error: RewriteError) -> Error {
        let about = match error {
            RewriteError::Config(error) => return usage(format!("--set, --hold: {error}")),
            RewriteError::Write(WriteError::Io(error)) => {
                let name = self.target.name();
                return Error::from(error).context(format!("{name} cannot be written"));
            }
            RewriteError::Write(_) | RewriteError::NotForPcap(_) => self.target.name(),
            _ => self.input.name(),
        };
        Error::from(error).context(about.to_owned())
    }
}
