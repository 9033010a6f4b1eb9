//! Errors of devices, by whose fault they are.

use std::io;

use thiserror::Error;

/// Why a device cannot be opened or used. Every message is one line that names the device, the
/// value and the remedy.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// What the user named is invalid: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The system refused: exit code 1.
    #[error("{message}: {source}")]
    System {
        /// What failed, on which device, and the remedy.
        message: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The device went away while in use.
    #[error("{0} has gone away; start again when it is back")]
    Gone(String),
}
