//! The file of changes to restore on an interface, in case both processes of a run are killed.
//!
//! The file is written before the first change and removed when everything is given back. If a file
//! exists and nobody holds the interface, the file says what is still owed.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use rxo_device::DeviceError;

use super::held::give;
use super::link;
use crate::handover::{Holdings, Link, Settings};
use crate::lock::InterfaceLock;
use crate::{DeviceName, Interface, fault};

/// The changes to restore on one interface.
#[derive(Debug)]
pub(super) struct Owed<'a> {
    pub(super) holdings: &'a Holdings,
    pub(super) settings: &'a Settings,
    pub(super) has_gro: bool,
    pub(super) was_taken_over: bool,
}

const GRO: &str = "gro";
const TAKEN_OVER: &str = "taken_over";

impl Owed<'_> {
    /// Writes the file for `link`, atomically.
    ///
    /// # Errors
    /// If the directory cannot be written, such as without root.
    pub(super) fn write(&self, link: &Link) -> Result<(), DeviceError> {
        let mut lines = vec![identity(link)];
        lines.extend(self.has_gro.then(|| GRO.to_owned()));
        lines.extend(self.was_taken_over.then(|| TAKEN_OVER.to_owned()));
        lines.extend(self.settings.to_lines());
        lines.extend(self.holdings.to_lines());
        let text = lines.join("\n") + "\n";
        let path = path(link.index)
            .map_err(|error| fault::system("cannot tell the network namespace", error))?;
        let directory = path.parent().unwrap_or(&path);
        // If this fails, opening the file fails too.
        _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        let unfinished = path.with_extension("new");
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&unfinished, &path));
        written.map_err(|error| {
            let what =
                "cannot note what the nic is owed, for the case that both processes are killed";
            fault::system(format!("{what}: {}", path.display()), error)
        })
    }
}

/// Removes the file: the interface with this index is owed nothing any more.
pub(super) fn settle(index: u32) {
    if let Ok(path) = path(index) {
        // There is no file if none could be written.
        _ = fs::remove_file(path);
    }
}

/// Locks `device`, then gives it what it is owed; `note` gets a line if it was owed something.
///
/// # Errors
/// As [`restore`].
pub(super) fn lock_and_restore(
    device: &DeviceName,
    note: &mut impl FnMut(&str),
) -> Result<InterfaceLock, DeviceError> {
    let index = Interface::find(device.name())?.index()?.unsigned_abs();
    // A run that is ending gives back by itself, so the file counts only once the lock is free.
    let lock = InterfaceLock::take(&device.to_string(), index)?;
    // An unreadable file cannot be restored from; a run that could not write it has reported that.
    if let Ok(Some(text)) = owed_text(index) {
        give_owed(device, index, &text, note)?;
    }
    Ok(lock)
}

/// Gives the interface of `device` what a killed run owes it; `note` gets a line if it was owed something.
/// Returns whether a killed run was known.
///
/// # Errors
/// If there is no such interface, another rxo has it, or the system refuses.
pub fn restore(device: &DeviceName, mut note: impl FnMut(&str)) -> Result<bool, DeviceError> {
    let index = Interface::find(device.name())?.index()?.unsigned_abs();
    let _lock = InterfaceLock::take(&device.to_string(), index)?;
    let text = owed_text(index).map_err(|error| {
        fault::system(format!("cannot read what {device} is owed; run as root"), error)
    })?;
    text.as_ref().map_or(Ok(()), |text| give_owed(device, index, text, &mut note))?;
    Ok(text.is_some())
}

/// The content of the file, if there is one.
fn owed_text(index: u32) -> io::Result<Option<String>> {
    match path(index).and_then(fs::read_to_string) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        text => text.map(Some),
    }
}

fn give_owed(
    device: &DeviceName,
    index: u32,
    text: &str,
    note: &mut impl FnMut(&str),
) -> Result<(), DeviceError> {
    let link = link(index, &device.to_string())?;
    // The index may belong to another interface now.
    if text.lines().next() == Some(&identity(&link)) {
        let owed = Owed {
            holdings: &Holdings::from_lines(&link, text),
            settings: &Settings::from_lines(text),
            has_gro: text.lines().any(|line| line == GRO),
            was_taken_over: text.lines().any(|line| line == TAKEN_OVER),
        };
        let given = give(&owed, &link);
        // A refusal would be repeated, and must not keep later runs from the nic.
        settle(index);
        given?;
        note(&format!("{device} has back what a run that was killed had taken"));
    }
    settle(index);
    Ok(())
}

/// The first line of the file: identifies the interface beyond its index.
fn identity(link: &Link) -> String {
    let mac = link.mac.iter().map(|byte| format!("{byte:02x}"));
    // The directory may survive a restart of the system, as in a container.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("interface {} {} {}", link.index, mac.collect::<String>(), boot.trim())
}

/// The file of an interface: one for each interface of each network namespace, in a directory that a
/// restart empties. A service manager may choose another directory.
fn path(index: u32) -> io::Result<PathBuf> {
    let namespace = fs::metadata("/proc/self/ns/net")?.ino();
    let directory = std::env::var_os("RUNTIME_DIRECTORY").map_or("/run/rxo".into(), PathBuf::from);
    Ok(directory.join(format!("{namespace}-{index}")))
}
