//! `rxo run`: a worker between two devices until it is told to stop.
//!
//! The flags become a [`plan`]; the [`survey`] looks at what the plan names; [`carry`] fits the
//! policy to the sink; [`custody`] knows what of the interfaces is changed for the run; what is in force
//! is the [`configuration`]. Only then the process becomes two: a [`session`] opens the devices and
//! works, and a [`keeper`] gives back what was changed, however the session ends; they talk over a
//! [`channel`]. While it runs, readings become [`figures`], these lines of text by [`show`], and [`say`]
//! prints them.

mod acks;
mod carry;
mod channel;
mod configuration;
mod custody;
mod figures;
mod impair;
mod keeper;
mod plan;
mod say;
mod session;
mod show;
mod split;
mod sum;
mod survey;
mod tap;

use anyhow::{Context, Result};
use rxo_driver::guard::{self, Side};
use rxo_driver::{DeviceName, Origin};

use self::channel::Control;
use self::configuration::Configuration;
use self::custody::Custody;
use self::keeper::Keeper;
use self::plan::Plan;
use self::session::Session;
use self::survey::Survey;
use crate::exit::usage;
use crate::flags::RunFlags;
use crate::{output, stop};

/// Runs until a signal, and prints the totals; or only checks, on a dry run.
///
/// # Errors
/// If the plan is invalid, a device cannot be opened, or one fails while in use.
pub(crate) fn command(flags: &RunFlags) -> Result<()> {
    if flags.restore {
        return restore(flags);
    }
    let mut plan = Plan::from_flags(flags)?;
    let survey = Survey::of(&plan)?;
    let sink = plan.host.to_string();
    plan.policy = carry::carried(plan.policy, &sink, survey.sink())?;
    let mut custody = if flags.dry_run { Custody::examine(&plan) } else { Custody::take(&plan) }?;
    let configuration = Configuration::new(&plan, survey, &custody);
    if flags.dry_run {
        return if plan.json {
            output::json_document(&configuration)
        } else {
            output::text(&configuration.text())
        };
    }
    custody.isolate(plan.isolates)?;
    // With one thread still: nothing of it is left half done in the other process.
    match guard::split().context("cannot start a second process")? {
        Side::Keeper(worker) => Keeper::new(custody, worker, (&plan, survey))?.keep(),
        Side::Worker(channel) => {
            let stop = stop::on_any_request()?;
            let control = Control::start(channel, std::sync::Arc::clone(&stop))?;
            Session { plan, survey, configuration, custody }.work(&control, &stop)
        }
    }
}

/// Only gives the nic what a run that was killed has left it without.
fn restore(flags: &RunFlags) -> Result<()> {
    let nic: DeviceName = flags.nic.parse().context("--nic")?;
    if nic.kind().interface != Some(Origin::Existing) {
        return Err(usage(format!("--restore needs --nic packet:IFNAME, and not {nic}")));
    }
    if !custody::restore(&nic)? {
        output::note(&format!("{nic} has everything: no run that was killed is known"));
    }
    Ok(())
}
