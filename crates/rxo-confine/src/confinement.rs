//! Everything that a process still needs, as data.

use std::path::PathBuf;

use rustix::thread::CapabilitySet;

use crate::User;

/// What a process still needs. The default needs nothing but what is open already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// Folders, with everything below them, and files that may still be opened by their path. Those that do not exist are
    /// left out.
    pub paths: Vec<(PathBuf, Access)>,
    /// The kinds of sockets that may still be made.
    pub sockets: Sockets,
    /// Whose end may be forced.
    pub kill: Kill,
    /// What is kept of the capabilities that the process has.
    pub capabilities: CapabilitySet,
    /// The user that the process becomes; `None` keeps the one that it has. Needs `CAP_SETUID` and `CAP_SETGID`, and
    /// leaves no capability.
    pub user: Option<User>,
    /// Whether only the user is changed, and nothing is given up beside.
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

/// What may be done below a path.
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
    /// None. Those that are open go on to work.
    #[default]
    None,
    /// Unix sockets.
    Unix,
    /// What changes network interfaces: netlink and unix sockets, and datagram sockets that ask about interfaces. No TCP.
    Interfaces,
    /// Also packet sockets, and queues of io_uring.
    Devices,
}

/// Whose end may be forced, beside that of the process itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kill {
    /// Nobody's.
    #[default]
    Nobody,
    /// That of the process with this number.
    Process(u32),
    /// That of processes for which a descriptor is open (`pidfd`).
    Given,
}
