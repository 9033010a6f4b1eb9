//! Errors of devices: faults of the user, errors of the system, and removed devices.

use std::io;

use thiserror::Error;

/// The reason for which a device cannot be opened or used. Every message is one line that names the device,
/// the value and the remedy.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// The user's input is invalid; a command ends with exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The system refused the operation; a command ends with exit code 1.
    #[error("{message}: {source}")]
    System {
        /// The failed operation, the device, and the remedy, in one line.
        message: String,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The device was removed while in use.
    #[error("{0} has gone away; start again when it is back")]
    Gone(String),
}

/// Converts the error for functions that return an [`io::Error`]. The message stays the same. The system's error
/// stays available through `Error::source`.
impl From<DeviceError> for io::Error {
    fn from(error: DeviceError) -> Self {
        let kind = match &error {
            DeviceError::Usage(_) => io::ErrorKind::InvalidInput,
            DeviceError::System { source, .. } => source.kind(),
            DeviceError::Gone(_) => io::ErrorKind::NotFound,
        };
        Self::new(kind, error)
    }
}
