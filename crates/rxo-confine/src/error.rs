//! Errors that occur while a process gives up privileges.

use std::io;

use thiserror::Error;

/// The reason why privileges could not be given up completely.
#[derive(Debug, Error)]
pub enum ConfineError {
    /// The process cannot change to the user that the confinement names.
    #[error(
        "cannot become user {user}: {why}; start as root, or with CAP_SETUID and CAP_SETGID, and outside of containers that have no such user"
    )]
    User {
        /// The user, as the caller named it.
        user: String,
        /// The error that the system returned.
        why: io::Error,
    },
    /// The system refuses to drop a privilege of this process.
    #[error("cannot give up {what}: {why}; --no-sandbox does without")]
    Refused {
        /// The privilege that could not be given up.
        what: &'static str,
        /// The error that the system returned.
        why: io::Error,
    },
}

impl ConfineError {
    pub(crate) fn refused(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::Refused { what, why }
    }
}
