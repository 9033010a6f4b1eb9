//! `rxo expand`: the capture that `rxo coalesce` was given, byte for byte.

use std::path::Path;

use anyhow::{Error, Result, bail};
use rxo_capture::WriteError;
use rxo_trace::rewrite::{Expanded, Expander, FileFormat, RewriteError};
use serde::Serialize;

use crate::captures::{Input, OutputFile, Progress, Reading, Report, Step};
use crate::exit::partial;
use crate::flags::ExpandFlags;
use crate::numbers::grouped;
use crate::stop;

/// The summary as JSON.
#[derive(Debug, Serialize)]
struct Done<'a> {
    input: &'a str,
    output: &'a str,
    #[serde(flatten)]
    figures: Expanded,
    /// Why part of the coalesced capture was not read.
    partial: Option<String>,
}

/// Restores a capture.
///
/// # Errors
/// If the input cannot be read, does not come from `rxo coalesce` or was changed since, the file
/// cannot be written, or part of the input could not be read.
pub(crate) fn command(flags: &ExpandFlags) -> Result<()> {
    let input = Input::new(&flags.input);
    let stop = stop::on_request()?;
    let (mut reading, mut step) = Reading::open(&input, &stop)?;
    if let (Step::Partial(why), true) = (&step, reading.records.is_empty()) {
        bail!("{why}");
    }
    let (target, file) = OutputFile::create(&flags.output, &[&flags.input])?;
    let output = target.name().to_owned();
    let told = |error| told(error, input.name(), &output);
    let progress = Progress::over(std::slice::from_ref(&input));
    progress.begin(&input);
    let format = format(&flags.output);
    let mut expander = Expander::new(&reading.capture, file, format).map_err(told)?;
    while step == Step::More {
        expander.take(&mut reading.records).map_err(told)?;
        progress.at(reading.capture.position());
        step = reading.next();
    }
    expander.take(&mut reading.records).map_err(told)?;
    let finished = match step {
        Step::Partial(_) => expander.finish_partial(),
        Step::More | Step::Over => expander.finish(),
    };
    let (file, figures) = finished.map_err(told)?;
    let report = target.complete(&file)?;
    progress.finish();
    let missing = if let Step::Partial(why) = step { Some(why) } else { None };
    let done = Done { input: input.name(), output: &output, figures, partial: missing.clone() };
    print(report, flags.json, &done)?;
    missing.map_or(Ok(()), |why| Err(partial(why)))
}

fn print(report: Report, json: bool, done: &Done<'_>) -> Result<()> {
    if json {
        return report.json(done);
    }
    let Done { output, figures, .. } = done;
    let mut text = format!(
        "{output}: {} packets, given back from {} with {} aggregates.",
        grouped(figures.originals),
        grouped(figures.packets),
        grouped(figures.aggregates)
    );
    if figures.original_was_partial {
        text += "\nThe capture that was coalesced had itself not been read to its end.";
    }
    report.text(&text)
}

/// The format that the extension of the name asks for; `None` if it names none.
fn format(name: &Path) -> Option<FileFormat> {
    let extension = name.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "pcap" | "cap" => Some(FileFormat::Pcap),
        "pcapng" => Some(FileFormat::PcapNg),
        _ => None,
    }
}

/// The error with the name of the file that it is about.
fn told(error: RewriteError, input: &str, output: &str) -> Error {
    match error {
        RewriteError::Write(WriteError::Io(error)) => {
            Error::from(error).context(format!("{output} cannot be written"))
        }
        RewriteError::Write(_) | RewriteError::NotForPcap(_) => {
            Error::from(error).context(output.to_owned())
        }
        _ => Error::from(error).context(input.to_owned()),
    }
}
