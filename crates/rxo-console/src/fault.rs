//! Errors by whose fault they are. The command ends with another exit code for each.

use anyhow::Error;
use thiserror::Error;

/// The user typed something that is invalid. The text names it and says what would be accepted.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The error for what the user should have typed differently.
pub fn usage(message: impl Into<String>) -> Error {
    UsageError(message.into()).into()
}

/// The result was printed, but a part of it is missing. The text says why.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct PartialError(pub String);

/// The error after an incomplete result: a damaged file, a signal.
pub fn partial(why: impl Into<String>) -> Error {
    PartialError(why.into()).into()
}
