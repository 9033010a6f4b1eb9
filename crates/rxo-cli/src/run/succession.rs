//! `--upgrade SOCKET`: takes over the devices of a running rxo, or hands this process's devices over to a
//! later one.
//!
//! A command that finds a running rxo at the socket asks the keeper of that rxo, receives the descriptors of
//! all devices, and prepares everything while that rxo works. Then the command takes the devices over by its
//! [`Claim`], and is the worker of that run from then on. All changes to interfaces stay in place.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use rxo_driver::custody::{Control, Custody, Succeeding, Successor};
use rxo_driver::succession::{self, Handover};
use rxo_driver::{Access, Heartbeat, Listener};

use super::configuration::Configuration;
use super::devices::Handles;
use super::plan::Plan;
use super::reload::FileOfRun;
use super::session::{Session, allow_files};
use super::survey::{self, Survey};
use crate::{exit, stop};

/// The time within which the running rxo must hand over.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the keeper of a run that listens at the plan's socket; `None` if no run does.
pub(super) fn find(plan: &Plan) -> Result<Option<Successor>> {
    let find = |path: &Path| Successor::find(path).with_context(|| label(path));
    Ok(plan.upgrade.as_deref().map(find).transpose()?.flatten())
}

/// Binds the plan's socket for a later rxo.
pub(super) fn listen(plan: &Plan) -> Result<Option<Listener>> {
    let bind = |path: &Path| Listener::bind(&label(path), path, Access::OwnerOnly);
    Ok(plan.upgrade.as_deref().map(bind).transpose()?)
}

/// Takes over the run of `successor` until a signal, and prints the totals.
///
/// # Errors
/// If the other process does not hand over, and therefore continues; also the errors of any run.
pub(super) fn succeed(mut plan: Plan, file: Option<FileOfRun>, successor: Successor) -> Result<()> {
    let stop = stop::on_any_request(file.is_some())?;
    allow_files(plan.guests.len());
    let workers = survey::workers(&plan);
    let asked = successor.ask().context("--upgrade")?;
    let Succeeding { channel, handover: socket, heartbeat } = asked;
    let mut handover = Handover::receive(&socket, HANDOVER_TIMEOUT).context("--upgrade")?;
    let held = Handles::inherit(&plan, &workers, &mut handover)?;
    let [nic, host] = held.interfaces();
    let survey = Survey::of_succession(&plan, workers, nic);
    plan.policy = survey.carried(&plan)?;
    let devices = held.open_inherited(&plan, &survey)?;
    let sockets = plan.addresses.inherit(|name| handover.take(name)?.files.into_iter().next())?;
    let custody = Custody::succeeding(plan.claim(&survey), nic, host)?;
    let configuration = Configuration::new(&plan, &survey, Some(&custody));
    let heartbeat = heartbeat.map_or_else(Heartbeat::new, Ok)?;
    let mut keeper = Control::new(channel, custody, Arc::clone(&stop));
    // The keeper and its restorer keep the record of changes to interfaces.
    keeper.leave_to_restorer();
    let claim = Some(Claim { socket });
    let mut session = Session { plan, file, survey, configuration, heartbeat, claim };
    session.work_with((held, devices), &mut keeper, (sockets, &stop))
}

/// The right of this process, which has prepared everything, to take over the devices of another process.
#[derive(Debug)]
pub(super) struct Claim {
    /// The socket to the running worker, which hands over the positions of the devices.
    socket: UnixStream,
}

impl Claim {
    /// Makes the other process stop, continues at the positions of its devices, and reports that to the keeper.
    /// If any of this fails, the other process continues, and this process ends at once, without closing
    /// anything in order, because closing in order would also affect the other process.
    pub(super) fn enforce(mut self, (held, plan): (&Handles, &Plan), keeper: &Control) {
        let mut enforce = || -> io::Result<()> {
            succession::prepared(&mut self.socket)?;
            let positions = Handover::receive(&self.socket, HANDOVER_TIMEOUT)?;
            held.go_on_at(plan, positions)?;
            succession::claim(&mut self.socket)?;
            keeper.has_succeeded()
        };
        if let Err(error) = enforce() {
            exit::at_once(Error::new(error).context("--upgrade: the running rxo goes on"));
        }
    }
}

fn label(path: &Path) -> String {
    format!("--upgrade {}", path.display())
}
