//! What can go wrong in a lab, by whose fault. Every message is one line.

use std::io;

use thiserror::Error;

/// Why a lab could not be built or a transfer not be made.
#[derive(Debug, Error)]
pub enum LabError {
    /// The caller asked for something that cannot be: the value and what would be accepted.
    #[error("{0}")]
    Usage(String),
    /// The system refused.
    #[error("{message}: {source}")]
    System {
        /// What was tried, on what, and what may help.
        message: String,
        /// What the system said.
        source: io::Error,
    },
    /// This kernel does not have what was asked for.
    #[error("{0}")]
    Unsupported(String),
    /// A connection ended or stood still before its time.
    #[error("{0}")]
    Transfer(String),
}

/// What everything that can fail here returns.
pub type Result<T> = std::result::Result<T, LabError>;

/// The error for what the caller should not have asked for.
pub(crate) fn usage(message: impl Into<String>) -> LabError {
    LabError::Usage(message.into())
}

/// Says what was tried when the system refuses.
pub(crate) trait Context<T> {
    /// The message names the thing, the value and the remedy.
    fn context(self, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| LabError::System { message: message(), source })
    }
}
