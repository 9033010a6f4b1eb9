//! `--upgrade SOCKET`: takes over the devices of a running rxo, or hands this process's devices over to a
//! later one.
//!
//! A command that finds a running rxo at the socket opens the nic while that rxo still uses it. It then asks
//! the keeper of that rxo, receives the hosts' devices with their connections and rings, and from then on is
//! the worker of that run. All changes to interfaces stay in place.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rxo_driver::custody::{Control, Custody, Succeeding, Successor};
use rxo_driver::succession::{Estate, Legacy};
use rxo_driver::{Access, Listener, Pulse};

use super::configuration::Configuration;
use super::devices::Handles;
use super::plan::Plan;
use super::reload::FileOfRun;
use super::session::{Session, allow_files};
use super::survey::Survey;
use crate::stop;

/// The time within which the running rxo must hand over.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the keeper of a run that listens at the plan's socket; `None` if none does.
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
    let survey = Survey::of_succession(&plan)?;
    plan.policy = survey.carried(&plan)?;
    let custody = Custody::examine(plan.claim(&survey))?;
    let configuration = Configuration::new(&plan, &survey, Some(&custody));
    let stop = stop::on_any_request(file.is_some())?;
    allow_files(plan.guests.len());
    // Open from now on, so that no frame is lost while the other process ends.
    let (mut held, nic) = Handles::beside(&plan)?;
    let asked = successor.ask().with_context(|| "--upgrade".to_owned())?;
    let Succeeding { channel, mut estate, pulse } = asked;
    let mut left = Estate::receive(&estate, PATIENCE).context("--upgrade")?;
    let read_until = left.read_until;
    let devices = held.inherit((&plan, &survey), nic, |name| take(&mut left.devices, name))?;
    let one = |files: Vec<OwnedFd>| files.into_iter().next();
    let sockets = plan.doors.inherit(|name| take(&mut left.devices, name).and_then(one))?;
    let pulse = pulse.map_or_else(Pulse::new, Ok)?;
    left.claim(&mut estate).context("--upgrade: the running rxo goes on")?;
    let mut keeper = Control::new(channel, custody, Arc::clone(&stop));
    // The keeper and its restorer keep the record of changes to interfaces.
    keeper.leave_to_restorer();
    let doors = Vec::new();
    let mut session = Session { plan, file, survey, configuration, pulse, doors };
    session.work_with((held, devices), Some(read_until), &mut keeper, (sockets, &stop))
}

/// Takes the descriptors that are handed over under this name; `None` if there are none.
fn take(devices: &mut Vec<Legacy>, name: &str) -> Option<Vec<OwnedFd>> {
    let at = devices.iter().position(|device| device.name == name)?;
    Some(devices.swap_remove(at).files)
}

fn label(path: &Path) -> String {
    format!("--upgrade {}", path.display())
}
