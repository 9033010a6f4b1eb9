//! What a process still needs, as data, and how everything else is given up.

use std::io;
use std::path::PathBuf;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{CapabilitySet, set_no_new_privs};
use thiserror::Error;

use crate::{InForce, User, calls, capabilities, files};

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

/// Why nothing, or not everything, is given up.
#[derive(Debug, Error)]
pub enum ConfineError {
    /// The process cannot become the user.
    #[error(
        "cannot become user {user}: {why}; start as root, or with CAP_SETUID and CAP_SETGID, and outside of containers that have no such user"
    )]
    User {
        /// The user as it was named.
        user: String,
        /// The reason.
        why: io::Error,
    },
    /// The system refuses to take something away.
    #[error("cannot give up {what}: {why}; --no-sandbox does without")]
    Refused {
        /// What could not be given up.
        what: &'static str,
        /// The reason.
        why: io::Error,
    },
}

impl ConfineError {
    pub(crate) fn refused(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::Refused { what, why }
    }
}

impl Confinement {
    /// Gives up everything else, for good, in this thread and in those that it starts later. Returns what the kernel has
    /// taken on.
    ///
    /// # Errors
    /// If the user cannot be changed, or the system refuses to take something away that it knows.
    pub fn apply(&self) -> Result<InForce, ConfineError> {
        let user = self.user.as_ref();
        if self.is_open {
            user.map_or(Ok(()), User::assume)?;
            return Ok(InForce::open(user));
        }
        // Paths are looked up as the user that the process still is.
        let files = files::Files::prepare(self)?;
        capabilities::empty_bounding_set();
        user.map_or(Ok(()), User::assume)?;
        let capabilities = capabilities::keep(self.capabilities)?;
        let no_new_privs = set_no_new_privs(true);
        no_new_privs.map_err(|why| ConfineError::refused("gaining privileges")(why.into()))?;
        let landlock_abi = files.restrict()?;
        // Nobody of the same user reads its memory, which may be that of guests, and no core file has it.
        let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        hidden.map_err(|why| ConfineError::refused("being looked into")(why.into()))?;
        let calls = calls::restrict(self)?;
        Ok(InForce::new(user, capabilities, landlock_abi, calls))
    }
}
