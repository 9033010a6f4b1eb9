//! `rxo repro menon --part receive`: what Receive Aggregation and Acknowledgment Offload gain a
//! receiving host (section 5), on rxo's own stack.
//!
//! The flags become a [`plan`] of [`stack`]s. One [`measure`]ment is a [`station`] (rxo's host with its
//! [`worker`], and threads that read) with Linux senders; it gives a [`sample`] in which the worker's
//! [`stages`] are the paper's [`category`]s. Samples become [`row`]s, these the [`figures`], with a
//! [`fit`] and what the [`paper`] states, and [`aims`] of our own, all in a [`report`].

mod aims;
mod category;
mod figures;
mod fit;
mod measure;
mod paper;
mod plan;
mod report;
mod row;
mod sample;
mod stack;
mod stages;
mod station;
mod units;
mod worker;

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};

use self::plan::Plan;
use self::report::Report;
use self::row::{ExchangeRow, Row};
use self::sample::{Bulk, Exchange};
use self::stack::{Case, Stack};
use self::units::Units;
use crate::flags::MenonFlags;
use crate::machine::Machine;
use crate::outcome;
use crate::progress::Progress;
use crate::rounds::in_turn;

/// Measures, writes the figures, and prints what was found beside what the paper found.
///
/// # Errors
/// When a flag cannot be, private networks cannot be made, a transfer breaks or arrives wrong, or a
/// file cannot be written; after Ctrl-C, when what was found until then has been printed.
pub(super) fn command(flags: &MenonFlags, stop: &AtomicBool) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let privilege = outcome::privilege()?;
    let rows = measured(&plan, stop)?;
    let mut report = Report::new(&plan, Machine::read(privilege), Units::of_machine(), rows);
    report.partial = outcome::stopped(stop).or(report.partial);
    report.files = outcome::draw(report.drawings(), &plan.out)?;
    outcome::print(&report, plan.json, || report.text())?;
    outcome::ended(report.partial)
}

fn measured(plan: &Plan, stop: &AtomicBool) -> Result<(Vec<Row>, Vec<ExchangeRow>)> {
    let progress = Progress::new(plan.steps(), plan.json);
    let bulk = in_turn(&plan.bulk, plan.rounds, stop, |case, round| {
        bulk_step(case, plan, round, &progress)
    })?;
    let exchange = in_turn(&plan.exchange, plan.rounds, stop, |stack, round| {
        exchange_step(stack, plan, round, &progress)
    })?;
    progress.finish();
    let rows = plan.bulk.iter().zip(&bulk).filter_map(|(case, samples)| Row::of(*case, samples));
    let exchanges = plan.exchange.iter().zip(&exchange);
    let exchanges = exchanges.filter_map(|(stack, samples)| ExchangeRow::of(*stack, samples));
    Ok((rows.collect(), exchanges.collect()))
}

fn bulk_step(case: Case, plan: &Plan, round: usize, progress: &Progress) -> Result<Bulk> {
    let name = format!("round {}: {}", round + 1, case.name());
    progress.begin(&name);
    let sample =
        measure::bulk(case, plan).with_context(|| format!("{name} could not be measured"))?;
    progress.end(&format!(
        "{name:<56} {:>6.2} Gbit/s  {:>6.2} Gbit/CPU s",
        sample.gbit_per_s(),
        sample.scaled_gbit_per_s()
    ));
    Ok(sample)
}

fn exchange_step(stack: Stack, plan: &Plan, round: usize, progress: &Progress) -> Result<Exchange> {
    let name = format!("round {}: exchange, {}", round + 1, stack.name());
    progress.begin(&name);
    let sample = measure::request_response(stack, plan)
        .with_context(|| format!("{name} could not be measured"))?;
    progress.end(&format!("{name:<56} {:>6.0} a second", sample.per_s));
    Ok(sample)
}
