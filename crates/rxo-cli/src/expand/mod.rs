//! `rxo expand`: restores the original of a capture from `rxo coalesce`, byte for byte.

use std::path::Path;

use anyhow::Result;
use rxo_console::output_file::Report;
use rxo_trace::rewrite::{Expanded, Expander, FileFormat};
use serde::Serialize;

use crate::captures::{Input, Rewriting};
use crate::exit::partial;
use crate::flags::ExpandFlags;
use crate::numbers::grouped;

/// The summary of `rxo expand` as JSON.
#[derive(Debug, Serialize)]
struct Done<'a> {
    input: &'a str,
    output: &'a str,
    #[serde(flatten)]
    figures: Expanded,
    /// The reason why part of the coalesced capture was not read; `None` if all of the capture was read.
    partial: Option<String>,
}

/// Restores the original capture, and prints the summary.
///
/// # Errors
/// If the input cannot be read, was not written by `rxo coalesce`, or was changed since; if the file cannot be written;
/// or if part of the input could not be read.
pub(crate) fn command(flags: &ExpandFlags) -> Result<()> {
    let input = Input::new(&flags.input);
    let (mut rewriting, mut file) = Rewriting::begin(&input, &flags.output, true)?;
    let expander = Expander::new(rewriting.capture(), &mut file, format(&flags.output));
    let mut expander = expander.map_err(|error| rewriting.with_name(error))?;
    rewriting.read(|_, records| expander.take(records))?;
    let missing = rewriting.missing();
    let finished = match missing {
        Some(_) => expander.finish_partial(rewriting.damage()),
        None => expander.finish(),
    };
    let figures = finished.map_err(|error| rewriting.with_name(error))?;
    let output = rewriting.output();
    let report = rewriting.complete(&file)?;
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
    if figures.left_out > 0 {
        text += &format!(
            "\nLeft out: {} packets that come after packet {} of the original, which is missing.",
            grouped(figures.left_out),
            grouped(figures.originals + 1)
        );
    }
    if figures.original_was_partial {
        text += "\nThe capture that was coalesced had itself not been read to its end.";
    }
    report.text(&text)
}

/// Returns the file format for the extension of `name`; `None` if no format has this extension.
fn format(name: &Path) -> Option<FileFormat> {
    let extension = name.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "pcap" | "cap" => Some(FileFormat::Pcap),
        "pcapng" => Some(FileFormat::PcapNg),
        _ => None,
    }
}
