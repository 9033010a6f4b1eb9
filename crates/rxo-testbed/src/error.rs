//! Errors of a lab (a test network), classified by their cause. Every message is one line.

use std::io;

use thiserror::Error;

/// The error of building a lab, or of a transfer.
#[derive(Debug, Error)]
pub enum LabError {
    /// An argument is invalid. The message names the value and the accepted values.
    #[error("{0}")]
    Usage(String),
    /// The system refused an operation.
    #[error("{message}: {source}")]
    System {
        /// The message: the operation, its object, and a remedy if there is one.
        message: String,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The kernel of this machine does not support the operation.
    #[error("{0}")]
    Unsupported(String),
    /// A connection failed or made no progress, or a guest (an emulated machine) did not answer as expected.
    #[error("{0}")]
    Transfer(String),
}

/// The result of every function of this crate that can fail.
pub type Result<T> = std::result::Result<T, LabError>;

/// Creates the error for an invalid argument.
pub(crate) fn usage(message: impl Into<String>) -> LabError {
    LabError::Usage(message.into())
}

/// Creates the error for a guest (an emulated machine) or a connection that did not answer as expected.
pub fn failed(message: String) -> LabError {
    LabError::Transfer(message)
}

/// A trait that adds the failed operation to a system error.
pub trait Context<T> {
    /// Adds `message` to the error. The message names the object, the value and the remedy.
    ///
    /// # Errors
    /// Returns the original error as [`LabError::System`], with the message.
    fn context(self, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| LabError::System { message: message(), source })
    }
}
