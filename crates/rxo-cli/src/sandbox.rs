//! `--user` and `--no-sandbox`: the user that a process becomes, and the privileges that it gives up.
//!
//! [`rxo_confine`] describes as data which privileges each process needs, and gives up all others. The
//! commands call it after devices, captures and sockets are open, and before the first byte of the network is
//! read.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rxo_confine::{Confinement, InForce, User};
use rxo_console::log::{self, Level};
use rxo_driver::{DeviceName, guard, lock_folder, remove_stale};

use crate::exit::usage;
use crate::flags::{SandboxFlags, UserFlags};

/// The settings of `--user` and `--no-sandbox`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sandbox {
    is_off: bool,
    user: Option<User>,
}

impl Sandbox {
    /// Returns the settings of a command without the flag `--user`.
    pub(crate) const fn from_flags(flags: &SandboxFlags) -> Self {
        Self { is_off: flags.no_sandbox, user: None }
    }

    /// Returns the settings of `--user` and `--no-sandbox`.
    ///
    /// # Errors
    /// If there is no such user.
    pub(crate) fn from_user_flags(flags: &UserFlags) -> Result<Self> {
        let user = flags.user.as_deref().map(User::find).transpose();
        let user = user.map_err(|error| usage(format!("--user {error}")))?;
        Ok(Self { user, ..Self::from_flags(&flags.sandbox) })
    }

    /// Gives up all privileges that are not in `needs`, for this thread and for those that it starts later.
    /// Returns the limits that then apply.
    ///
    /// # Errors
    /// If the user cannot be changed, or the system refuses.
    pub(crate) fn confine(&self, needs: Confinement) -> io::Result<InForce> {
        let Self { is_off, user } = self.clone();
        let confinement = Confinement { is_open: is_off, user, ..needs };
        confinement.apply().map_err(io::Error::other)
    }
}

/// Warns the user of each limit that this kernel does not support.
pub(crate) fn warn_of_gaps(in_force: &InForce) {
    in_force.gaps().iter().for_each(|gap| log::write(Level::Warning, gap));
}

/// Returns `true` if a run with `device` may have to connect to the device's socket again after the other
/// side has ended.
pub(crate) fn connects(device: &DeviceName) -> bool {
    device.kind().prefix == "virtio"
}

/// Returns `true` if opening `device` loads a program into the kernel.
pub(crate) fn attaches_programs(device: &DeviceName) -> bool {
    device.kind().prefix == "xdp"
}

/// Returns the folder of each path in `sockets`.
pub(crate) fn folders_of<'a>(sockets: impl IntoIterator<Item = &'a Path>) -> Vec<PathBuf> {
    let folder = |socket: &Path| match socket.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    sockets.into_iter().map(folder).collect()
}

/// Runs `command`. A second process removes the files `sockets` after the command has ended, however it ends. A
/// confined process cannot remove files, and a process of another user may lack the permission.
///
/// # Errors
/// Returns the error of `command`, and an error if the system cannot create the second process.
pub(crate) fn with_files_removed(
    flags: &UserFlags,
    sockets: Vec<&Path>,
    command: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if sockets.is_empty() || flags.sandbox.no_sandbox && flags.user.is_none() {
        return command();
    }
    match guard::detach("rxo-remover")? {
        guard::Detached::Here { channel, child } => {
            let done = command();
            drop(channel);
            child.wait_within(REMOVING);
            done
        }
        guard::Detached::There { channel, .. } => {
            let needs = Confinement::remover(
                lock_folder().into_iter().collect(),
                folders_of(sockets.clone()),
            );
            Sandbox::from_flags(&flags.sandbox).confine(needs)?;
            guard::await_end(&channel);
            sockets.into_iter().for_each(remove_stale);
            Ok(())
        }
    }
}

/// Maximum time to wait for the second process to remove the socket files.
const REMOVING: std::time::Duration = std::time::Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_that_nobody_knows_is_named() {
        let flags = UserFlags { user: Some("no such".to_owned()), ..UserFlags::default() };
        let said = Sandbox::from_user_flags(&flags).unwrap_err().to_string();
        assert!(said.starts_with("--user no such: the system knows no such user"), "{said}");
    }

    #[test]
    fn the_folder_of_a_bare_name_is_this_one() {
        let sockets = ["s", "/run/s", "a/s"].map(Path::new);
        assert_eq!(folders_of(sockets), [".", "/run", "a"].map(PathBuf::from));
    }
}
