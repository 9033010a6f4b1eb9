//! `rxo run`, `rxo card` and `rxo guest`: a worker between devices until a signal ends it.
//!
//! 1. The flags become a [`plan`]; for `rxo card` see [`mod@card`].
//! 2. The [`survey`] examines the devices of the plan, and limits the policy to the sink.
//! 3. [`custody`] examines the changes that the run will make to interfaces.
//! 4. The [`configuration`] is the result. [`mod@dry`] prints it together with all findings.
//! 5. The process becomes two: a [`session`] opens the devices and works; a [`Keeper`] restores the interfaces, however
//!    the session ends. A third process, which was started earlier, restores the interfaces if the session and the
//!    keeper are killed at once.
//! 6. With `--upgrade`, a later rxo takes over: it is a [session](succession) under the same keeper.
//! 7. While the session works, [`reporter`] prints its readings as [figures](rxo::figures).

mod acks;
mod card;
mod checks;
mod configuration;
mod devices;
mod dry;
mod guest;
mod opening;
mod plan;
mod reload;
mod remote;
mod reporter;
mod session;
mod succession;
mod survey;
mod values;

use anyhow::{Context, Result};
use rxo_confine::Confinement;
use rxo_console::log;
use rxo_driver::custody::{self, Control, Custody, Keeper, Lifeline, RestorerRole};
use rxo_driver::guard::{self, Side};
use rxo_driver::service::Service;
use rxo_driver::{DeviceName, Heartbeat, Interface, Listener, Origin, remove_stale};

use self::configuration::Configuration;
use self::plan::Plan;
use self::reload::FileOfRun;
use self::session::Session;
use self::survey::Survey;
use crate::config::Source;
use crate::control::Sockets;
use crate::exit::{self, usage};
use crate::flags::{CardFlags, GuestFlags, RunFlags};
use crate::sandbox::folders_of;
use crate::{output, stop};

/// Runs until a signal, and prints the totals. A dry run only checks.
///
/// # Errors
/// If the plan is invalid, a device cannot be opened, or one fails while in use.
pub(crate) fn command(flags: &RunFlags) -> Result<()> {
    if flags.restore {
        return restore(flags);
    }
    execute(Plan::from_flags(flags)?, None, flags.live.dry_run)
}

/// Runs as [`command`], with flags in a file. Errors about such flags show the position in the file.
///
/// # Errors
/// Returns the errors of [`command`], and an error if the file cannot be read or is invalid.
pub(crate) fn with_file(source: &Source) -> Result<()> {
    let loaded = source.load()?;
    let flags = &loaded.flags;
    let run = || {
        if flags.restore {
            return restore(flags);
        }
        let file = FileOfRun { source: source.clone(), settings: loaded.settings.clone() };
        execute(Plan::from_flags(flags)?, Some(file), flags.live.dry_run)
    };
    run().map_err(|error| loaded.locate(error))
}

/// Emulates a network card until a signal, and prints the totals. A dry run only checks.
///
/// # Errors
/// The errors of [`command`].
pub(crate) fn card(flags: &CardFlags) -> Result<()> {
    execute(card::plan(flags)?, None, flags.live.dry_run)
}

/// Serves guests until a signal, and prints the totals. A dry run only checks.
///
/// # Errors
/// The errors of [`command`].
pub(crate) fn guests(flags: &GuestFlags) -> Result<()> {
    execute(Plan::of_guests(flags)?, None, flags.live.dry_run)
}

fn execute(plan: Plan, file: Option<FileOfRun>, dry_run: bool) -> Result<()> {
    if dry_run {
        return dry::run(plan);
    }
    if let Some(successor) = succession::find(&plan)? {
        return succession::succeed(plan, file, successor);
    }
    let heartbeat = if plan.upgrade.is_some() { Heartbeat::to_be_sent() } else { Heartbeat::new() };
    let heartbeat = heartbeat.context("cannot share memory with a second process")?;
    let existing = plan.existing();
    if existing.is_empty() {
        return carry_out(prepare(plan, file)?, heartbeat, None);
    }
    // Forked before any lock or socket is open, so that the last process does not inherit it.
    match custody::start_restorer().context("cannot start a third process")? {
        RestorerRole::AsRestorer(restorer) => {
            let sockets = plan.sockets();
            let folders = folders_of(sockets.iter().copied());
            plan.sandbox.confine(Confinement::restorer(custody::folders(), folders))?;
            log::begin(plan.log, &plan.nic.to_string())?;
            restorer.wait_and_restore(&existing, (heartbeat, plan.watchdog), output::note);
            sockets.into_iter().for_each(remove_stale);
            Ok(())
        }
        RestorerRole::With(lifeline) => match prepare(plan, file) {
            Ok(prepared) => carry_out(prepared, heartbeat, Some(lifeline)),
            Err(error) => {
                lifeline.dismiss();
                Err(error)
            }
        },
    }
}

/// A checked run that can start.
struct Prepared {
    plan: Plan,
    file: Option<FileOfRun>,
    survey: Survey,
    configuration: Configuration,
    custody: Custody,
    sockets: Sockets,
    /// The socket for a later rxo that takes over; `None` without `--upgrade`.
    successors: Option<Listener>,
}

/// Checks everything. Takes locks and sockets, but changes nothing yet.
fn prepare(mut plan: Plan, file: Option<FileOfRun>) -> Result<Prepared> {
    recover(&plan.nic)?;
    let survey = Survey::of(&plan)?;
    plan.policy = survey.carried(&plan)?;
    let claim = plan.claim(&survey);
    let sockets = plan.addresses.bind()?;
    let successors = succession::listen(&plan)?;
    let mut custody = Custody::take(claim, output::note)?;
    let configuration = Configuration::new(&plan, &survey, Some(&custody));
    custody.isolate()?;
    Ok(Prepared { plan, file, survey, configuration, custody, sockets, successors })
}

fn carry_out(prepared: Prepared, heartbeat: Heartbeat, lifeline: Option<Lifeline>) -> Result<()> {
    let Prepared { plan, file, survey, configuration, custody, sockets, successors } = prepared;
    let nic = plan.nic.to_string();
    // The process still has one thread, so the fork leaves no lock held in the child.
    match guard::split().context("cannot start a second process")? {
        Side::Keeper(worker) => {
            let files = plan.sockets();
            let folders = folders_of(files.iter().copied());
            let needs = Confinement::keeper(worker.number(), custody::folders(), folders);
            let configured = file.as_ref().map(|file| file.source.path());
            let needs = needs.reading(folders_of(configured));
            sockets.leave();
            let mut keeper = Keeper::new(custody, worker, stop::requests(file.is_some())?)?;
            if let Some(file) = file {
                keeper = keeper.reloads_from(file.source.path(), stop::hangups()?)?;
            }
            keeper = keeper.with_service(Service::of_environment());
            if let Some(successors) = successors {
                keeper = keeper.with_successors(successors);
            }
            if let Some(time) = plan.confirm {
                keeper = keeper.confirm_within(time);
            }
            if let Some(limit) = plan.watchdog {
                keeper = keeper.watch(heartbeat, limit);
            }
            if let Some(lifeline) = lifeline {
                keeper = keeper.with_lifeline(lifeline);
            }
            // Confined before the first thread starts, so that all threads are.
            plan.sandbox.confine(needs)?;
            log::begin(plan.log, &nic)?;
            let kept = keeper.keep(output::note);
            // A confined worker cannot remove these files, and a killed one leaves them behind.
            files.into_iter().for_each(remove_stale);
            exit::as_ended(kept?)
        }
        Side::Worker(channel) => {
            let _other = successors.map(Listener::leave);
            let stop = stop::on_any_request(file.is_some())?;
            let mut keeper = Control::new(channel, custody, std::sync::Arc::clone(&stop));
            // Held to the end: the last process waits until both other processes have closed it.
            let _lifeline = lifeline;
            let claim = None;
            let session = Session { plan, file, survey, configuration, heartbeat, claim };
            session.work(&mut keeper, sockets, &stop)
        }
    }
}

/// Restores the nic's name if a killed run has changed it; until then no nic of this name exists.
fn recover(nic: &DeviceName) -> Result<()> {
    let is_existing = nic.kind().interface == Some(Origin::Existing);
    if is_existing && custody::left(nic).is_some() {
        custody::recover(nic, output::note)?;
    }
    Ok(())
}

/// Restores the nic to its state before a killed run, and does nothing else.
fn restore(flags: &RunFlags) -> Result<()> {
    let nic: DeviceName = flags.nic.parse().context("--nic")?;
    if nic.kind().interface != Some(Origin::Existing) {
        return Err(usage(format!("--restore needs --nic packet:IFNAME, and not {nic}")));
    }
    if custody::left(&nic).is_none() {
        Interface::find(nic.name()).with_context(|| format!("--nic {nic}"))?;
    }
    if !custody::restore(&nic, output::note)? {
        output::note(&format!("{nic} has everything: no run that was killed is known"));
    }
    Ok(())
}
