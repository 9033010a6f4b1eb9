//! `rxo verify`: compares the streams of two captures, flow by flow.

mod show;

use anyhow::{Result, bail};
use rxo_capture::{Batches, LinkType, Position, Step};
use rxo_trace::verify::{Comparison, ComparisonResult, Limits, Side};
use serde::Serialize;

use crate::captures::{Input, Progress, open, partial_reason};
use crate::exit::{partial, usage};
use crate::flags::VerifyFlags;
use crate::{output, stop};

/// The result of `rxo verify` as JSON.
#[derive(Debug, Serialize)]
struct ComparisonReport<'a> {
    a: &'a str,
    b: &'a str,
    #[serde(flatten)]
    verdict: &'a ComparisonResult,
    /// The reason why part of the captures was not compared; `None` if everything was compared.
    partial: Option<&'a str>,
}

/// Compares two captures, and prints the result.
///
/// # Errors
/// If a capture cannot be read, the captures differ, or equality cannot be decided.
pub(crate) fn command(flags: &VerifyFlags) -> Result<()> {
    let limits = limits(flags)?;
    let inputs = [Input::new(&flags.a), Input::new(&flags.b)];
    if inputs == [Input::Standard, Input::Standard] {
        return Err(usage("- twice: standard input can be read once"));
    }
    let stop = stop::on_request()?;
    let (a, b) = (open(&inputs[0], &stop)?, open(&inputs[1], &stop)?);
    let progress = Progress::over(&inputs);
    let (verdict, missing) = compare(limits, [a, b], &progress);
    progress.finish();
    let [a, b] = [inputs[0].name(), inputs[1].name()];
    if flags.json {
        let partial = missing.as_deref();
        output::json_document(&ComparisonReport { a, b, verdict: &verdict, partial })?;
    } else {
        output::text(&show::text([a, b], &verdict, missing.is_some()))?;
    }
    if !verdict.differences.is_empty() {
        bail!("{a} and {b} differ in {} of the flows", verdict.differences.len());
    }
    if let Some(found) = verdict.undecided.first() {
        return Err(partial(show::undecided([a, b], found)));
    }
    missing.map_or(Ok(()), |why| Err(partial(why)))
}

fn limits(flags: &VerifyFlags) -> Result<Limits> {
    const MOST_MB: usize = 1 << 20;
    if !(1..=MOST_MB).contains(&flags.window) {
        return Err(usage(format!("--window {}: give 1 to {MOST_MB} megabytes", flags.window)));
    }
    Ok(Limits { waiting_bytes: flags.window * 1_000_000, ..Limits::default() })
}

/// Reads and compares both captures in parallel. Returns the result, and the reason why part of the captures
/// was not compared; `None` if everything was compared.
fn compare(
    limits: Limits,
    mut sides: [(Batches, Step); 2],
    progress: &Progress,
) -> (ComparisonResult, Option<String>) {
    let mut comparison = Comparison::new(limits);
    let mut missing: Option<String> = None;
    while let Some(side) = comparison.next_side() {
        let (reading, step) = &mut sides[usize::from(side == Side::B)];
        take(&mut comparison, side, reading);
        match step {
            Step::More => *step = reading.step(),
            Step::Over => comparison.end(side),
            Step::Damaged(_) | Step::Stopped(_) => {
                comparison.cut(side);
                missing = missing.or_else(|| partial_reason(step));
            }
        }
        let read = sides.iter().map(|(reading, _)| reading.capture.position().file_bytes_read);
        progress.at(Position { file_bytes_read: read.sum(), file_bytes: None });
    }
    (comparison.finish(), missing)
}

fn take(comparison: &mut Comparison, side: Side, reading: &mut Batches) {
    let interfaces = reading.capture.interfaces();
    for record in reading.records.drain(..) {
        let interface = interfaces.get(record.interface as usize);
        let link = interface.map_or(LinkType(u16::MAX), |interface| interface.link);
        comparison.push(side, &record, link);
    }
}
