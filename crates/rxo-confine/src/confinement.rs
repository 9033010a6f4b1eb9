//! Everything that a process still needs, as data.

use std::path::PathBuf;

use rustix::thread::CapabilitySet;

use crate::User;

/// The needs of a process: paths, sockets, signals, capabilities. The default needs nothing but descriptors that are
/// already open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// Files and folders (with everything below them) that may still be opened by path. Paths that do not exist are
    /// left out.
    pub paths: Vec<(PathBuf, Access)>,
    /// Kinds of sockets that the process may still create.
    pub sockets: Sockets,
    /// Processes that the process may still kill.
    pub kill: Kill,
    /// Capabilities that are kept, as far as the process has them.
    pub capabilities: CapabilitySet,
    /// The user that the process becomes; `None` keeps the one that it has. Needs `CAP_SETUID` and `CAP_SETGID`, and
    /// leaves no capability.
    pub user: Option<User>,
    /// True with `--no-sandbox`: only the user is changed, and nothing else is given up.
    pub is_open: bool,
}

impl Default for Confinement {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            sockets: Sockets::None,
            kill: Kill::Nobody,
            capabilities: CapabilitySet::empty(),
            user: None,
            is_open: false,
        }
    }
}

/// Allowed operations on the files below a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read files, and list folders.
    Read,
    /// Also write, make, rename and remove plain files, and make folders.
    Write,
    /// Also remove files, but not write them.
    Remove,
}

/// Kinds of sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sockets {
    /// No new sockets. Open sockets continue to work.
    #[default]
    None,
    /// Unix sockets.
    Unix,
    /// Sockets that configure network interfaces: netlink and unix sockets, and datagram sockets for `ioctl`. No TCP.
    Interfaces,
    /// The sockets of [`Sockets::Interfaces`], packet sockets, and io_uring queues.
    Devices,
}

/// Processes that the process may still kill, beside itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kill {
    /// No other process.
    #[default]
    Nobody,
    /// The process with this number.
    Process(u32),
    /// Processes for which the process holds a descriptor (`pidfd`).
    Given,
}
