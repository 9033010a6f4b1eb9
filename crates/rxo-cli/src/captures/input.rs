//! The inputs of commands over captures: files by name, and `-` for standard input.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rxo_capture::{Capture, CaptureError};

/// The input from which a capture is read: a file or standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The capture is in a file.
    File {
        /// The file's path; on Unix it may contain any bytes.
        path: PathBuf,
        /// The path as a string, to name the capture in messages.
        name: String,
    },
    /// The capture is read from standard input.
    Standard,
}

impl Input {
    /// Creates the input with the name that the user has typed; `-` is standard input.
    pub(crate) fn new(typed: impl AsRef<OsStr>) -> Self {
        let path = Path::new(typed.as_ref());
        if path == Path::new("-") {
            return Self::Standard;
        }
        Self::File { path: path.to_owned(), name: path.display().to_string() }
    }

    /// Returns the name of the input, for messages.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::File { name, .. } => name,
            Self::Standard => "-",
        }
    }

    /// Returns the path of the input; `-` for standard input.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } => path,
            Self::Standard => Path::new("-"),
        }
    }

    /// Opens the capture. Reading standard input ends when `stop` is set.
    ///
    /// # Errors
    /// If the input cannot be opened, or is not a capture.
    pub(crate) fn open(&self, stop: &Arc<AtomicBool>) -> Result<Capture, CaptureError> {
        match self {
            Self::File { path, .. } => Capture::open(path),
            Self::Standard => Capture::from_stdin(Arc::clone(stop)),
        }
    }

    /// Returns the length of the input in bytes; `None` if it is unknown, as for a pipe.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let Self::File { path, .. } = self else { return None };
        let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some(metadata.len())
    }
}
