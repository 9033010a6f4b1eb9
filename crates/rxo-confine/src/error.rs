//! Why a process could not give up what it does not need.

use std::io;

use thiserror::Error;

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
