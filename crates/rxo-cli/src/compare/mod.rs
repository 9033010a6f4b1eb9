//! `rxo compare`: the effect of several policies on the traffic in captures, in one table.
//!
//! The captures are read once for all policies. A damaged capture, or a signal, ends only the reading: the
//! command prints the table so far, and marks it as partial.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Error, Result};
use rxo_demo::costs::{self, Given};
use rxo_trace::study::Ended;
use rxo_trace::study::compare::{NamedPolicy, PolicyComparison, Settings};
use rxo_trace::text;

use crate::captures::{Input, Progress, inputs, skipped};
use crate::exit::{partial, usage};
use crate::flags::CompareFlags;
use crate::numbers::grouped;
use crate::{output, rules, stop};

/// Reads the captures and prints the table.
///
/// # Errors
/// If a flag is invalid, no capture can be read, or a capture could not be read to its end.
pub(crate) fn command(flags: &CompareFlags) -> Result<()> {
    let inputs = inputs(&flags.files, "rxo compare FILE… --policies LIST")?;
    let settings = settings(flags)?;
    let comparison = NamedPolicy::list(&flags.policies)
        .and_then(|policies| PolicyComparison::new(policies, settings));
    let comparison = comparison.map_err(|error| usage(format!("--policies {error}")))?;
    let stop = stop::on_request()?;
    let comparison = read(comparison, &inputs, &stop)?;
    let interrupted = stop
        .load(Ordering::Relaxed)
        .then(|| format!("interrupted after {} packets", grouped(comparison.packets())));
    skipped(&flags.files).iter().for_each(|note| output::aside(note));
    let table = comparison.finish(interrupted);
    if flags.json {
        output::json_document(&table)?;
    } else {
        output::text(&text::comparison(&table))?;
    }
    table.partial.map_or(Ok(()), |why| Err(partial(why)))
}

fn settings(flags: &CompareFlags) -> Result<Settings> {
    let costs = flags.costs.as_deref().map(costs::read).transpose()?;
    let Given { costs, from, .. } = costs.unwrap_or_else(Given::assumed);
    let rate = flags.rate;
    if !(rate > 0.0 && rate <= MOST_GBIT_PER_S) {
        return Err(usage(format!("--rate {rate}: give a rate up to {MOST_GBIT_PER_S} Gbit/s")));
    }
    Ok(Settings {
        poll: rules::poll(&flags.poll)?,
        checksums: rules::checksums(&flags.checksum)?,
        costs,
        costs_from: from,
        rate_gbit_per_s: rate,
    })
}

const MOST_GBIT_PER_S: f64 = 100_000.0;

/// Reads all captures until they end or a signal arrives.
fn read(
    mut comparison: PolicyComparison,
    inputs: &[Input],
    stop: &Arc<AtomicBool>,
) -> Result<PolicyComparison> {
    let progress = Progress::over(inputs);
    let mut opened = 0;
    let mut failed = None;
    for input in inputs {
        progress.begin(input);
        match input.open(stop) {
            Ok(mut capture) => {
                opened += 1;
                let is_wanted = |position| {
                    progress.at(position);
                    !stop.load(Ordering::Relaxed)
                };
                if comparison.read(&mut capture, is_wanted) == Ended::Stopped {
                    break;
                }
            }
            Err(error) => {
                comparison.refuse_source(input.name(), &error.to_string());
                failed = failed.or(Some(error));
            }
        }
        progress.end(input);
    }
    progress.finish();
    match failed {
        Some(error) if opened == 0 => Err(Error::from(error)),
        _ => Ok(comparison),
    }
}
