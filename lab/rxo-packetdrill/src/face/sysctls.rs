//! A folder that replaces `/proc/sys/net/ipv4` while a script runs.
//!
//! Scripts configure the machine with sysctl(8), or by writing to `/proc/sys`. If the variable
//! `RXO_PACKETDRILL_SYSCTLS` names a folder, a file for each known name is created there, and
//! values written to these files are applied. `cargo xtask packetdrill` mounts the folder over the
//! system's for the script alone, so that the script changes this host and not the machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use crate::host::Settings;

/// The folder, and the last contents of its files.
#[derive(Debug)]
pub(super) struct Sysctls {
    folder: PathBuf,
    seen: BTreeMap<OsString, String>,
}

impl Sysctls {
    /// Opens the folder that the environment names and creates a file for each name. `None` if it
    /// names none.
    pub(super) fn of_environment() -> Option<Self> {
        let folder = PathBuf::from(std::env::var_os(VARIABLE)?);
        Some(Self::prepare(folder))
    }

    fn prepare(folder: PathBuf) -> Self {
        let mut seen = BTreeMap::new();
        for (name, value) in Settings::sysctls() {
            if let Err(error) = fs::write(folder.join(name), format!("{value}\n")) {
                eprintln!("rxo-packetdrill: {}: {error}", folder.join(name).display());
            }
            seen.insert(name.into(), value.to_owned());
        }
        Self { folder, seen }
    }

    /// Returns the names and values that have changed since the last call.
    pub(super) fn changes(&mut self) -> Vec<(String, String)> {
        let mut changes = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            let (name, value) = (entry.file_name(), text.trim().to_owned());
            if self.seen.get(&name) != Some(&value) {
                changes.push((name.to_string_lossy().into_owned(), value.clone()));
                self.seen.insert(name, value);
            }
        }
        changes
    }
}

const VARIABLE: &str = "RXO_PACKETDRILL_SYSCTLS";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_told_once() {
        let folder = std::env::temp_dir().join(format!("rxo-sysctls-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut sysctls = Sysctls::prepare(folder.clone());
        assert_eq!(sysctls.changes(), []);
        assert_eq!(fs::read_to_string(folder.join("tcp_sack")).unwrap(), "1\n");
        fs::write(folder.join("tcp_sack"), "0\n").unwrap();
        fs::write(folder.join("tcp_unheard_of"), "7").unwrap();
        let mut changes = sysctls.changes();
        changes.sort();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(changes, [pair("tcp_sack", "0"), pair("tcp_unheard_of", "7")]);
        assert_eq!(sysctls.changes(), []);
        fs::remove_dir_all(&folder).unwrap();
    }
}
