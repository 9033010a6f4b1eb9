//! Record files: written atomically, checked for damage, and removed when they are obsolete.
//!
//! Contract: a record ends with a checksum over all lines before it. A file with a wrong checksum is never
//! restored from and never removed: it is renamed to `*.damaged`, and the user is notified.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rxo_device::DeviceError;

use super::pending::cannot_write;
use crate::DeviceName;
use crate::fault;
use crate::handover::Link;
use crate::sys::may_make;

/// The result of searching for the record of an interface.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecordLookup {
    Nothing,
    /// An intact record: its lines, without the checksum.
    Whole(String),
    Damaged,
}

const CHECKSUM: &str = "checksum ";
const UNFINISHED: &str = "new";
const DAMAGED: &str = "damaged";

/// Writes the record of the interface with this index.
///
/// # Errors
/// If the directory is not writable, for example without root, or the file system is full.
pub(super) fn write(index: u32, lines: &[String]) -> Result<(), DeviceError> {
    let path =
        path(index).map_err(|error| fault::system("cannot tell the network namespace", error))?;
    make_directory();
    let unfinished = path.with_extension(UNFINISHED);
    let written =
        write_file(&unfinished, &sealed(lines)).and_then(|()| fs::rename(&unfinished, &path));
    written.map_err(|error| {
        _ = fs::remove_file(&unfinished);
        cannot_write(&path, error)
    })
}

fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    // A crash must not leave the file's name without its content.
    file.sync_all()
}

/// Removes the record of the interface with this index.
pub(super) fn remove(index: u32) {
    remove_unfinished(index);
    if let Ok(path) = path(index) {
        // The file does not exist if it could not be written.
        _ = fs::remove_file(path);
    }
}

/// Removes the unfinished record that a killed process has left.
pub(super) fn remove_unfinished(index: u32) {
    if let Ok(path) = path(index) {
        _ = fs::remove_file(path.with_extension(UNFINISHED));
    }
}

/// Reads the record of the interface with this index.
///
/// # Errors
/// If the file exists and cannot be read.
pub(super) fn find(index: u32) -> io::Result<RecordLookup> {
    match path(index).and_then(fs::read) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(RecordLookup::Nothing),
        bytes => Ok(opened(&String::from_utf8_lossy(&bytes?))),
    }
}

/// Returns the path of the record of the interface with this index, for messages. Empty if the path cannot be
/// determined.
pub(super) fn shown(index: u32) -> String {
    path(index).unwrap_or_default().display().to_string()
}

/// Returns the folder of records, with `Ok` if this process can write there, and an error if it cannot.
pub(crate) fn folder() -> (PathBuf, io::Result<()>) {
    let folder = directory();
    let writable = may_make(&folder);
    (folder, writable)
}

/// Renames a damaged record to `*.damaged`. Returns the line that notifies the user.
pub(super) fn keep_damaged(device: &DeviceName, index: u32) -> String {
    let path = path(index).unwrap_or_default();
    let kept = path.with_extension(DAMAGED);
    let shown = if fs::rename(&path, &kept).is_ok() { &kept } else { &path };
    format!(
        "the record of what a killed run owes {device} is damaged, and nothing was restored from it; it is kept as \
         {}: compare it with `ip address` and `ip route`, and then remove it",
        shown.display()
    )
}

/// Returns all intact records of this network namespace, each with the index of its interface.
pub(super) fn all_here() -> Vec<(u32, String)> {
    let Ok(here) = namespace() else { return Vec::new() };
    let of_here = records().filter(|(owner, ..)| owner.0 == here);
    let whole = of_here.filter_map(|((_, index), _)| match find(index) {
        Ok(RecordLookup::Whole(text)) => Some((index, text)),
        _ => None,
    });
    whole.collect()
}

/// Removes the records of network namespaces that no longer exist, and their unfinished records.
pub(super) fn remove_lost() {
    let Ok(here) = namespace() else { return };
    let others: Vec<_> = records().filter(|((namespace, _), _)| *namespace != here).collect();
    if others.is_empty() {
        return;
    }
    let living = living_namespaces();
    let boot = boot();
    for ((namespace, _), path) in others {
        let is_of_boot = || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            text.lines().next().is_some_and(|identity| identity.ends_with(&boot))
        };
        let is = |kind: &str| path.extension().is_some_and(|extension| extension == kind);
        // In a namespace that exists, a run may be writing the file at this moment.
        let is_in_use = living.contains(&namespace) && (is(UNFINISHED) || is_of_boot());
        if !is(DAMAGED) && !is_in_use {
            _ = fs::remove_file(path);
        }
    }
}

/// Returns the inode numbers of the network namespaces that a process, a mount or an open file still uses.
fn living_namespaces() -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut add = |text: &str| found.extend(number_of(text));
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let process = process.path();
        let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
        let networks = threads.map(|thread| thread.path().join("ns/net"));
        for link in files.map(|file| file.path()).chain(networks) {
            if let Ok(target) = fs::read_link(link) {
                add(&target.to_string_lossy());
            }
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.split_whitespace().for_each(add);
    found
}

/// Parses the number in a string such as `net:[4026531840]`; `None` if the string has another form.
fn number_of(text: &str) -> Option<u64> {
    text.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

/// Lists the record files, each with its network namespace, its interface index and its path.
fn records() -> impl Iterator<Item = ((u64, u32), PathBuf)> {
    let files = fs::read_dir(directory()).into_iter().flatten().flatten();
    files.filter_map(|file| {
        let path = file.path();
        let (namespace, index) = path.file_stem()?.to_str()?.split_once('-')?;
        Some(((namespace.parse().ok()?, index.parse().ok()?), path))
    })
}

/// Returns the first line of a record: index and hardware address of `link`, and the boot id, which together
/// identify the interface.
pub(super) fn identity(link: &Link) -> String {
    let mac = link.mac.iter().map(|byte| format!("{byte:02x}"));
    // The boot id is included because the directory may survive a restart of the system, as in a container.
    format!("interface {} {} {}", link.index, mac.collect::<String>(), boot())
}

fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.trim().to_owned()
}

fn sealed(lines: &[String]) -> String {
    let text = lines.join("\n") + "\n";
    let checksum = checksum(&text);
    text + CHECKSUM + &format!("{checksum:016x}\n")
}

fn opened(text: &str) -> RecordLookup {
    let Some((lines, sum)) = text.rsplit_once(CHECKSUM) else { return RecordLookup::Damaged };
    let is_right =
        sum.ends_with('\n') && u64::from_str_radix(sum.trim_end(), 16) == Ok(checksum(lines));
    if is_right { RecordLookup::Whole(lines.to_owned()) } else { RecordLookup::Damaged }
}

/// Returns the FNV-1a checksum of `text` (64 bits), which must detect accidental damage only, not forgery.
fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the path of an interface's record: one file for each interface of each network namespace.
fn path(index: u32) -> io::Result<PathBuf> {
    Ok(directory().join(format!("{}-{index}", namespace()?)))
}

fn namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/thread-self/ns/net")?.ino())
}

/// Returns the directory of records, and creates it if it does not exist.
pub(super) fn make_directory() -> PathBuf {
    let directory = directory();
    // If this fails, writing a record fails too and reports it.
    _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    directory
}

/// Returns the directory of records: `/run/rxo`, which is emptied when the machine restarts, or the directory
/// that the service manager has chosen.
fn directory() -> PathBuf {
    std::env::var_os("RUNTIME_DIRECTORY").map_or("/run/rxo".into(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_whole_or_damaged_wherever_it_is_cut_or_changed() {
        let lines = ["interface 7 02 boot".to_owned(), "gro".to_owned()];
        let text = sealed(&lines);
        assert_eq!(opened(&text), RecordLookup::Whole("interface 7 02 boot\ngro\n".to_owned()));
        for cut in 0..text.len() {
            assert_eq!(opened(&text[..cut]), RecordLookup::Damaged, "{cut}");
            let mut changed = text.clone().into_bytes();
            changed[cut] ^= 1;
            let changed = String::from_utf8_lossy(&changed);
            assert_eq!(opened(&changed), RecordLookup::Damaged, "{changed}");
        }
    }

    #[test]
    fn this_namespace_is_alive() {
        assert!(living_namespaces().contains(&namespace().unwrap()));
        assert_eq!(number_of("net:[12]"), Some(12));
        assert_eq!(number_of("mnt:[12]"), None);
    }
}
