//! The requests of a conversation to the file system, and their results.
//!
//! These types are plain data, so the decisions of a conversation are pure functions. The caller opens the path
//! and keeps it open; the conversation receives only these facts.

use std::path::PathBuf;
use std::time::SystemTime;

/// A path to be opened below the served directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// A relative path without `..` and without empty names; `.` is the served directory itself.
    pub path: PathBuf,
    /// `true` if only a directory is wanted; anything else is [`Problem::Missing`].
    pub is_folder: bool,
}

/// The kind of file at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A regular file.
    File(Facts),
    /// A directory, whose names can be listed.
    Folder,
    /// A device, a socket or a pipe; these are not served.
    Other,
}

/// The facts that distinguish versions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The time of the last change of the file's content.
    pub changed: SystemTime,
}

/// The reason why a path cannot be opened or read, as reported to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The file does not exist: status 404.
    Missing,
    /// The file may not be read, or is outside the served directory: status 403.
    Forbidden,
    /// The server lacks descriptors or memory; a retry may succeed: status 503.
    Busy,
    /// Any other error: status 500.
    Unreadable,
}
