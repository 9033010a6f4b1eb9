//! Errors, classified by their cause: a mistake of the user, an incomplete result, a failure. Each class has
//! its own exit code.

use anyhow::Error;
use thiserror::Error;

/// The error for invalid input of the user. The message names the invalid input and the accepted values.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Creates a usage error from its message.
pub fn usage(message: impl Into<String>) -> Error {
    UsageError(message.into()).into()
}

/// The error for a result that was printed but is incomplete. The message gives the reason.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct PartialError(pub String);

/// Creates the error for an incomplete result, such as after a signal, or if an input file is damaged.
pub fn partial(why: impl Into<String>) -> Error {
    PartialError(why.into()).into()
}
