//! What a run owes an interface, in a file: for the case that both of its processes are killed.
//!
//! The file is written before anything is changed and removed when all is given back, so that one
//! that is there, with nobody holding the interface, says what is still owed.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use anyhow::{Context, Result};
use rxo_driver::{DeviceName, Holdings, Interface, InterfaceLock, Link, Settings};

use super::held::give;
use crate::output;

/// What is owed to one interface.
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
    /// Writes it for `link`, which is to get it: all or nothing.
    ///
    /// # Errors
    /// If there is no room for such files, as without root.
    pub(super) fn write(&self, link: &Link) -> Result<()> {
        let mut lines = vec![identity(link)];
        lines.extend(self.has_gro.then(|| GRO.to_owned()));
        lines.extend(self.was_taken_over.then(|| TAKEN_OVER.to_owned()));
        lines.extend(self.settings.to_lines());
        lines.extend(self.holdings.to_lines());
        let text = lines.join("\n") + "\n";
        let path = path(link.index).context("cannot tell the network namespace")?;
        let directory = path.parent().unwrap_or(&path);
        // Whether there is one shows when the file is opened.
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
        written.with_context(|| {
            let what =
                "cannot note what the nic is owed, for the case that both processes are killed";
            format!("{what}: {}", path.display())
        })
    }
}

/// Nothing is owed any more to the interface with this index.
pub(super) fn settle(index: u32) {
    if let Some(path) = path(index) {
        // There is none where none could be written.
        _ = fs::remove_file(path);
    }
}

/// Locks `device`, and gives it what it is owed.
///
/// # Errors
/// As [`restore`].
pub(super) fn lock_and_restore(device: &DeviceName) -> Result<InterfaceLock> {
    let index = Interface::find(device.name())?.index()?.unsigned_abs();
    // One that is ending gives back itself: what is owed shows when it has let go.
    let lock = InterfaceLock::take(&device.to_string(), index)?;
    // What cannot be read cannot be given; where it could not be written, that is said.
    if let Ok(Some(text)) = owed_text(index) {
        give_owed(device, index, &text)?;
    }
    Ok(lock)
}

/// Gives `device` what a run whose processes were killed owes it. Returns whether there was anything.
///
/// # Errors
/// If another rxo has it, or the system refuses.
pub(in crate::run) fn restore(device: &DeviceName) -> Result<bool> {
    let index = Interface::find(device.name())?.index()?.unsigned_abs();
    let _lock = InterfaceLock::take(&device.to_string(), index)?;
    let text = owed_text(index);
    let text = text.with_context(|| format!("cannot read what {device} is owed; run as root"))?;
    text.as_ref().map_or(Ok(()), |text| give_owed(device, index, text))?;
    Ok(text.is_some())
}

/// What the file says, where there is one.
fn owed_text(index: u32) -> io::Result<Option<String>> {
    let Some(path) = path(index) else { return Ok(None) };
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        text => text.map(Some),
    }
}

fn give_owed(device: &DeviceName, index: u32, text: &str) -> Result<()> {
    let link = Link::read(index)?.context("the interface has gone away")?;
    // Another interface can have got its number.
    if text.lines().next() == Some(&identity(&link)) {
        let owed = Owed {
            holdings: &Holdings::from_lines(&link, text),
            settings: &Settings::from_lines(text),
            has_gro: text.lines().any(|line| line == GRO),
            was_taken_over: text.lines().any(|line| line == TAKEN_OVER),
        };
        let given = give(&owed, &link);
        // What is refused now is refused again, and must not keep every later run from the nic.
        settle(index);
        given?;
        output::note(&format!("{device} has back what a run that was killed had taken"));
    }
    settle(index);
    Ok(())
}

/// What an interface is known by beside its index.
fn identity(link: &Link) -> String {
    let mac = link.mac.iter().map(|byte| format!("{byte:02x}"));
    // The directory may outlive the system, as in a container.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("interface {} {} {}", link.index, mac.collect::<String>(), boot.trim())
}

/// A file for each interface of each network namespace, in a directory that does not outlive the
/// system; a service manager may choose another.
fn path(index: u32) -> Option<PathBuf> {
    let namespace = fs::metadata("/proc/self/ns/net").ok()?.ino();
    let directory = std::env::var_os("RUNTIME_DIRECTORY").map_or("/run/rxo".into(), PathBuf::from);
    Some(directory.join(format!("{namespace}-{index}")))
}
