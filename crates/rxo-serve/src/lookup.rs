//! What a conversation asks of the file system, and what it is told.
//!
//! Plain data, so that the decisions stay pure: the owner of the conversation looks up the path and
//! keeps what it opened; the conversation sees only these facts.

use std::path::PathBuf;
use std::time::SystemTime;

/// A path to open below the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Relative, without `..`, without empty names; `.` is the directory itself.
    pub path: PathBuf,
    /// Only a directory is wanted. Anything else is [`Problem::Missing`].
    pub is_folder: bool,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A regular file.
    File(Facts),
    /// A directory.
    Folder,
    /// A device, a socket or a pipe. It is not served.
    Other,
}

/// What tells one version of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its length in bytes.
    pub bytes: u64,
    /// When its content last changed.
    pub changed: SystemTime,
}

/// Why a path cannot be opened or read, as far as the client may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no such file: status 404.
    Missing,
    /// It may not be read, or it lies outside the directory: status 403.
    Forbidden,
    /// The server is short of descriptors; a later attempt may succeed: status 503.
    Busy,
    /// Anything else: status 500.
    Unreadable,
}
