//! Errors by whose fault they are. Each kind has its own exit code.

use anyhow::Error;
use thiserror::Error;

/// The user typed something that is invalid. The text names it and says what would be accepted.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Makes a usage error with this message.
pub fn usage(message: impl Into<String>) -> Error {
    UsageError(message.into()).into()
}

/// The result was printed, but a part of it is missing. The text says why.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct PartialError(pub String);

/// Makes the error after an incomplete result, such as of a damaged file, or after a signal.
pub fn partial(why: impl Into<String>) -> Error {
    PartialError(why.into()).into()
}
