//! Record of what must be restored on an interface, in case both processes of a run are killed.
//!
//! The record is a file. It is written before the first change, again after each change of its content, and
//! removed once everything is restored. A record of an interface that no run has locked lists what is still
//! to be restored.

use std::io;

use rxo_device::DeviceError;

use super::held::restore_on;
use super::link;
use super::names::Names;
use super::record::{self, RecordLookup};
use crate::handover::{Holdings, Link, Settings};
use crate::lock::InterfaceLock;
use crate::{DeviceName, Finding, Interface, State, fault};

/// The changes to restore on one interface.
#[derive(Debug)]
pub(super) struct PendingRestore<'a> {
    pub(super) holdings: &'a Holdings,
    pub(super) settings: &'a Settings,
    /// The nic's names, which the TAP has; `None` if the interface keeps its names.
    pub(super) names: Option<&'a Names>,
    pub(super) has_gro: bool,
    pub(super) was_taken_over: bool,
}

const GRO: &str = "gro";
const TAKEN_OVER: &str = "taken_over";

impl PendingRestore<'_> {
    /// Writes the record for `link`; the file is replaced atomically.
    ///
    /// # Errors
    /// If the directory is not writable, for example without root.
    pub(super) fn write(&self, link: &Link) -> Result<(), DeviceError> {
        let mut lines = vec![record::identity(link)];
        lines.extend(self.has_gro.then(|| GRO.to_owned()));
        lines.extend(self.was_taken_over.then(|| TAKEN_OVER.to_owned()));
        lines.extend(self.names.into_iter().flat_map(Names::to_lines));
        lines.extend(self.settings.to_lines());
        lines.extend(self.holdings.to_lines());
        record::write(link.index, &lines)
    }
}

/// Removes the record of the interface with this index, because nothing remains to be restored.
pub(super) fn remove_record(index: u32) {
    record::remove(index);
}

/// Locks `device`, then restores what its record lists. Calls `note` with a line if there was a record.
///
/// # Errors
/// Returns the errors of [`restore`].
pub(super) fn lock_and_restore(
    device: &DeviceName,
    note: &mut impl FnMut(&str),
) -> Result<InterfaceLock, DeviceError> {
    let (index, lock) = lock(device)?;
    record::remove_unfinished(index);
    record::remove_lost();
    match record::find(index) {
        Ok(RecordLookup::Whole(text)) => restore_recorded(device, index, &text, note)?,
        Ok(RecordLookup::Damaged) => note(&record::keep_damaged(device, index)),
        // A record that cannot be read cannot be used; the run that failed to write it has reported that.
        Ok(RecordLookup::Nothing) | Err(_) => {}
    }
    Ok(lock)
}

/// Locks the interface of `device`, and returns its index and the lock. A run that is ending restores the
/// interface by itself, so a record may be used only while no run holds the lock.
fn lock(device: &DeviceName) -> Result<(u32, InterfaceLock), DeviceError> {
    let index = || Ok(Interface::find(device.name())?.index()?.unsigned_abs());
    loop {
        let before = index()?;
        let lock = InterfaceLock::take(&device.to_string(), before)?;
        // While another run had taken over, the name belonged to its TAP.
        if index()? == before {
            return Ok((before, lock));
        }
    }
}

/// Restores what a killed run has left changed on the interface of `device`. Calls `note` with a line, and
/// returns `true`, if there was a record.
///
/// # Errors
/// If there is no such interface, another rxo has locked it, the record is damaged, or the system refuses.
pub fn restore(device: &DeviceName, note: impl FnMut(&str)) -> Result<bool, DeviceError> {
    record::remove_lost();
    restore_here(device, note)
}

/// Restores as [`restore`] does, but keeps the records of other network namespaces: a confined process does
/// not see all processes, and would remove the records of namespaces that still exist.
pub(super) fn restore_here(
    device: &DeviceName,
    mut note: impl FnMut(&str),
) -> Result<bool, DeviceError> {
    if recover(device, &mut note)? {
        return Ok(true);
    }
    let (index, _lock) = lock(device)?;
    record::remove_unfinished(index);
    let found = record::find(index).map_err(|error| {
        fault::system(format!("cannot read what {device} is owed; run as root"), error)
    })?;
    match found {
        RecordLookup::Whole(text) => {
            restore_recorded(device, index, &text, &mut note).map(|()| true)
        }
        RecordLookup::Damaged => Err(DeviceError::Usage(record::keep_damaged(device, index))),
        RecordLookup::Nothing => Ok(false),
    }
}

/// Restores the nic that had the name of `device` before a run was killed, if no interface has that name now
/// because the TAP is gone. Calls `note` with a line, and returns `true`, if there was such a nic.
///
/// # Errors
/// If another rxo has locked the nic, or the system refuses.
pub fn recover(device: &DeviceName, mut note: impl FnMut(&str)) -> Result<bool, DeviceError> {
    let Some((index, _)) = renamed(device) else { return Ok(false) };
    let _lock = InterfaceLock::take(&device.to_string(), index)?;
    match record::find(index) {
        Ok(RecordLookup::Whole(text)) => {
            restore_recorded(device, index, &text, &mut note).map(|()| true)
        }
        _ => Ok(false),
    }
}

/// Returns `true` if a record says that something on the nic of `device` must be restored.
pub(super) fn is_pending(device: &DeviceName) -> bool {
    record::all_here().into_iter().any(|(index, text)| {
        let had_name = Names::from_lines(&text).is_some_and(|names| names.name == device.name());
        let has_name = || {
            Link::read(index).is_ok_and(|link| link.is_some_and(|link| link.name == device.name()))
        };
        had_name || has_name()
    })
}

/// Returns the temporary name under which a killed run has left the nic of `device`; `None` if there is no
/// such nic.
fn left_as(device: &DeviceName) -> Option<String> {
    renamed(device).map(|(_, name)| name)
}

/// Returns a finding if the nic of `device` still has the temporary name that a killed run gave it; otherwise
/// `None`.
#[must_use]
pub fn left(device: &DeviceName) -> Option<Finding> {
    let name = left_as(device)?;
    let remedy = format!("`rxo run --nic {device} --restore` gives its name back");
    let found = format!("a run that was killed left it as `{name}`");
    Some(Finding::breaks(RECORD, found, remedy).for_device(device))
}

/// Returns two findings: whether another run uses `device`, whose interface has this index, and whether a
/// killed run has left a record.
pub(super) fn findings(device: &DeviceName, index: u32) -> [Finding; 2] {
    let in_use = match InterfaceLock::is_taken(index) {
        Ok(false) => Finding::fine(OTHER_RUN, "none has it"),
        Ok(true) => {
            let found = format!("{device} is in use by another rxo");
            Finding::breaks(OTHER_RUN, found, "end that one first")
        }
        Err(error) => Finding::failed((OTHER_RUN, "root"), &error, |text| {
            Finding::breaks(OTHER_RUN, format!("cannot lock {device}: {text}"), "run as root")
        }),
    };
    let is_in_use = in_use.state == State::Breaks;
    [in_use, record_of(device, index, is_in_use)]
}

fn record_of(device: &DeviceName, index: u32, is_in_use: bool) -> Finding {
    let restores =
        format!("the next run restores it, and so does `rxo run --nic {device} --restore`");
    match record::find(index) {
        Ok(RecordLookup::Nothing) => Finding::fine(RECORD, "nothing is owed"),
        Ok(RecordLookup::Whole(_)) if is_in_use => Finding::fine(RECORD, "of the run that has it"),
        Ok(RecordLookup::Whole(_)) => Finding::limited(
            RECORD,
            format!("a run that was killed owes {device} something"),
            restores,
        ),
        Ok(RecordLookup::Damaged) => {
            let found = format!("the record of what a killed run owes {device} is damaged");
            let remedy = "nothing will be restored from it; compare it with `ip address` and `ip route`, and remove it";
            let path = record::shown(index);
            Finding::limited(RECORD, format!("{found}: {path}"), remedy)
        }
        Err(error) => Finding::failed((RECORD, "root"), &error, |text| {
            Finding::limited(
                RECORD,
                format!("cannot be read: {text}"),
                "a killed run is not restored",
            )
        }),
    }
}

const RECORD: &str = "record";
const OTHER_RUN: &str = "other run";

/// Finds, by the records, the nic that had the name of `device`. Returns its index and its current name;
/// `None` if there is no such nic.
fn renamed(device: &DeviceName) -> Option<(u32, String)> {
    let taken = Interface::find(device.name()).ok().and_then(|one| one.index().ok());
    let (index, name) = record::all_here().into_iter().find_map(|(index, text)| {
        let names = Names::from_lines(&text).filter(|names| names.name == device.name())?;
        let link = Link::read(index).ok()??;
        let tap = names.tap.map(|(tap, _)| tap);
        let is_free = taken.is_none_or(|taken| tap == Some(taken.unsigned_abs()));
        let is_it = link.name == names.parked && is_free && is_of(&text, &link);
        is_it.then_some((index, link.name))
    })?;
    // While a run is active, its TAP has the name legitimately.
    let is_left = taken.is_none() || InterfaceLock::take(&device.to_string(), index).is_ok();
    is_left.then_some((index, name))
}

fn restore_recorded(
    device: &DeviceName,
    index: u32,
    text: &str,
    note: &mut impl FnMut(&str),
) -> Result<(), DeviceError> {
    let link = link(index, &device.to_string())?;
    if is_of(text, &link) {
        let names = Names::from_lines(text);
        let holdings = Holdings::from_lines(&link, text);
        if let Some(tap) = names.as_ref().and_then(Names::take_from_left) {
            holdings.take_from(&tap);
        }
        let pending = PendingRestore {
            holdings: &holdings,
            settings: &Settings::from_lines(text),
            names: names.as_ref(),
            has_gro: text.lines().any(|line| line == GRO),
            was_taken_over: text.lines().any(|line| line == TAKEN_OVER),
        };
        let given = restore_on(&pending, &link);
        // A second attempt would be refused too, and the record must not keep later runs from the nic.
        remove_record(index);
        given?;
        note(&format!("{device} has back what a run that was killed had taken"));
    }
    remove_record(index);
    Ok(())
}

/// Returns `true` if the record is about `link`. The index alone does not prove that, because the index may
/// belong to another interface now.
fn is_of(text: &str, link: &Link) -> bool {
    text.lines().next() == Some(&record::identity(link))
}

/// Creates the error for a record that cannot be written at `path`.
pub(super) fn cannot_write(path: &std::path::Path, error: io::Error) -> DeviceError {
    let what = "cannot note what the nic is owed, for the case that both processes are killed";
    fault::system(format!("{what}: {}", path.display()), error)
}
