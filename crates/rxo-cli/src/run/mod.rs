//! `rxo run` and `rxo card`: a worker between two devices until it is told to stop.
//!
//! The flags become a [`plan`], those of the [`mod@card`] too; the [`survey`] looks at the devices of the plan and
//! limits the policy to the sink; [`custody`] records what the run changes about interfaces; the [`configuration`]
//! is the result. Only then the process becomes two, which talk over a [`channel`]: a [`session`] opens
//! the devices and works, a [`keeper`] gives back what was changed, however the session ends. While the
//! session works, readings become [`figures`], [`show`] renders them as text, and [`say`] prints them.

mod acks;
mod card;
mod channel;
mod configuration;
mod copying;
mod custody;
mod figures;
mod guest;
mod impair;
mod keeper;
mod plan;
mod readings;
mod say;
mod session;
mod show;
mod split;
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
use crate::flags::{CardFlags, GuestFlags, RunFlags};
use crate::{output, stop};

/// Runs until a signal, and prints the totals. A dry run only checks.
///
/// # Errors
/// If the plan is invalid, a device cannot be opened, or one fails while in use.
pub(crate) fn command(flags: &RunFlags) -> Result<()> {
    if flags.restore {
        return restore(flags);
    }
    execute(Plan::from_flags(flags)?, flags.dry_run)
}

/// Plays a network card until a signal, and prints the totals. A dry run only checks.
///
/// # Errors
/// As [`command`].
pub(crate) fn card(flags: &CardFlags) -> Result<()> {
    execute(card::plan(flags)?, flags.dry_run)
}

/// Serves guests until a signal, and prints the totals. A dry run only checks.
///
/// # Errors
/// As [`command`].
pub(crate) fn guests(flags: &GuestFlags) -> Result<()> {
    execute(Plan::of_guests(flags)?, flags.dry_run)
}

fn execute(mut plan: Plan, dry_run: bool) -> Result<()> {
    let survey = Survey::of(&plan)?;
    plan.policy = survey.carried(&plan)?;
    let mut custody = if dry_run { Custody::examine(&plan) } else { Custody::take(&plan) }?;
    let configuration = Configuration::new(&plan, survey, &custody);
    if dry_run {
        return if plan.json {
            output::json_document(&configuration)
        } else {
            output::text(&configuration.text())
        };
    }
    custody.isolate(plan.isolates)?;
    // The process still has one thread, so the fork leaves no lock held in the child.
    match guard::split().context("cannot start a second process")? {
        Side::Keeper(worker) => Keeper::new(custody, worker, (&plan, survey))?.keep(),
        Side::Worker(channel) => {
            let stop = stop::on_any_request()?;
            let control = Control::start(channel, std::sync::Arc::clone(&stop))?;
            Session { plan, survey, configuration, custody }.work(&control, &stop)
        }
    }
}

/// Gives the nic back what a killed run took, and nothing else.
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
