//! Gives the process the privilege to create network namespaces, without real root privileges.
//!
//! A user namespace gives its creator every privilege inside it and none outside. That is enough for network
//! namespaces, interfaces, packet sockets and TAP devices of its own. Only a process with a single thread can
//! enter a user namespace, so `main` must do this first.

use std::fs;
use std::io;

use crate::error::{Context, LabError, Result};
use crate::sys;

/// The source of the privilege to create network namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// The process already had the privilege.
    Given,
    /// The process entered a user namespace of its own, in which it is root.
    UserNamespace,
}

/// Makes sure that this process may create network namespaces: does nothing if the process is root, otherwise
/// enters an unprivileged user namespace. Call it at the start of `main`, before any thread is started.
///
/// A process in a user namespace cannot reach the interfaces of the machine.
///
/// # Errors
/// If the kernel or the distribution forbids user namespaces, or the process has threads already. The message
/// names the remedy.
pub fn become_root_in_user_namespace() -> Result<Privilege> {
    if has_privilege() {
        return Ok(Privilege::Given);
    }
    let (user, group) = sys::effective_ids();
    sys::unshare(sys::Unshare::UserAndNetwork).map_err(refused)?;
    map_ids(user, group).context(|| {
        format!("cannot become root in a user namespace as user {user}; run as root")
    })?;
    Ok(Privilege::UserNamespace)
}

/// Gives this process, and the processes that it starts, a private, empty `/run`, in which programs put their
/// sockets. Call it after [`become_root_in_user_namespace`], before any thread is started.
///
/// # Errors
/// If the system refuses.
pub fn use_own_run_folder() -> Result<()> {
    sys::empty_run().context(|| "cannot mount an empty /run; run as root".to_owned())
}

/// Returns `true` if this process may administer networks and enter namespaces.
fn has_privilege() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    NEEDED_CAPABILITIES.iter().all(|capability| effective >> capability & 1 == 1)
}

fn map_ids(user: u32, group: u32) -> io::Result<()> {
    // The kernel lets an unprivileged process map its group only after it gave up setgroups.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

fn refused(source: io::Error) -> LabError {
    let remedy = SWITCHES
        .iter()
        .find(|(path, closed, _)| fs::read_to_string(path).is_ok_and(|v| v.trim() == *closed))
        .map_or("run as root", |(_, _, remedy)| remedy);
    let message = format!("private networks need root or user namespaces; {remedy}");
    LabError::System { message, source }
}

/// The numbers of the capabilities that this crate needs: CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN.
const NEEDED_CAPABILITIES: [u32; 3] = [12, 13, 21];

/// The kernel settings that can forbid user namespaces. Each entry has the setting's file, the value that
/// forbids user namespaces, and the remedy.
const SWITCHES: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "run as root, or set user.max_user_namespaces above 0",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "run as root, or set kernel.unprivileged_userns_clone to 1",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "run as root, or set kernel.apparmor_restrict_unprivileged_userns to 0",
    ),
];
