//! What can go wrong with a device, by whose fault.

use std::io;

use thiserror::Error;

/// Why a device cannot be opened or used. Every message is one line that names the thing, the
/// value and the remedy.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// The user named something that cannot be: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The system refused: exit code 1.
    #[error("{message}: {source}")]
    System {
        /// What was tried, on which device, and what may help.
        message: String,
        /// What the system said.
        source: io::Error,
    },
    /// The device went away while in use.
    #[error("{0} has gone away; start again when it is back")]
    Gone(String),
}
