//! Confinement: the privileges that a process needs after its start, as data.

use std::path::PathBuf;

use rustix::thread::CapabilitySet;

use crate::User;

/// The privileges that a process needs after its start: paths, sockets, signals, capabilities. The default
/// permits only the use of descriptors that are already open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// Files, and folders with everything below them, that may be opened by path. Paths that do not exist are
    /// ignored.
    pub paths: Vec<(PathBuf, Access)>,
    /// The kinds of sockets that the process may create.
    pub sockets: Sockets,
    /// `true` if the process may open AF_XDP sockets and attach their program.
    pub attaches_programs: bool,
    /// The processes that the process may kill.
    pub kill: Kill,
    /// The capabilities that the process keeps, as far as it has them.
    pub capabilities: CapabilitySet,
    /// The user that the process becomes; `None` keeps the current user. Changing the user needs `CAP_SETUID`
    /// and `CAP_SETGID`. A user other than root keeps no capabilities.
    pub user: Option<User>,
    /// `true` with `--no-sandbox`: only the user is changed, and nothing else is given up.
    pub is_open: bool,
}

impl Default for Confinement {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            sockets: Sockets::None,
            attaches_programs: false,
            kill: Kill::None,
            capabilities: CapabilitySet::empty(),
            user: None,
            is_open: false,
        }
    }
}

/// The allowed operations on files below a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Files may be read, and folders listed.
    Read,
    /// Files may be read, and folders listed. Plain files may also be written, created, renamed and removed,
    /// and folders created.
    Write,
    /// Files may be read and removed, but not written; folders may be listed.
    Remove,
}

/// The kinds of sockets that a process may create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sockets {
    /// No new sockets may be created. Open sockets continue to work.
    #[default]
    None,
    /// Unix sockets may be created.
    Unix,
    /// Sockets for configuring network interfaces may be created: netlink and unix sockets, and datagram
    /// sockets for `ioctl`. TCP sockets are refused.
    Interfaces,
    /// The sockets of [`Sockets::Interfaces`], packet sockets and io_uring queues may be created.
    Devices,
}

/// The processes that a process may kill, besides itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kill {
    /// No other process may be killed.
    #[default]
    None,
    /// Only the process with this id may be killed.
    Process(u32),
    /// The process may kill only processes for which it has an open descriptor (`pidfd`).
    Given,
}
