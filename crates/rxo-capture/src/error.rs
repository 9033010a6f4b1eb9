//! Errors of capture files.

use std::{fmt, io};

use super::Compression;

/// The error of opening a capture or reading it further. The message is one line with the file, the position,
/// the problem and the remedy.
///
/// All records before the position of the error have been delivered.
#[derive(Debug)]
pub struct CaptureError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    file: String,
    offset: u64,
    compression: Option<Compression>,
    fault: Fault,
}

/// The kind of a capture error.
#[derive(Debug)]
pub enum Fault {
    /// The file of the capture cannot be opened.
    Open(io::Error),
    /// The system cannot read the file further.
    Read(io::Error),
    /// The file is not a capture. The string names the format that the file seems to have, and the remedy.
    Foreign(String),
    /// The file ends too early. The string names the incomplete part.
    Truncated(String),
    /// The file has invalid contents. The string describes the fault.
    Damaged(String),
    /// The file is valid but needs an unsupported feature. The string names the feature and the remedy.
    Unsupported(String),
}

impl CaptureError {
    pub(super) fn new(
        file: &str,
        offset: u64,
        compression: Option<Compression>,
        fault: Fault,
    ) -> Self {
        Self(Box::new(Inner { file: file.to_owned(), offset, compression, fault }))
    }

    /// Returns the name of the file, as the caller gave it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.0.file
    }

    /// Returns the position of the error in bytes from the start of the capture; in a compressed file, from the start
    /// of the unpacked data.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.0.offset
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn fault(&self) -> &Fault {
        &self.0.fault
    }

    /// Returns `true` if the file was a valid capture up to the position of the error. The records before that
    /// position are then worth reporting.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !matches!(self.0.fault, Fault::Open(_) | Fault::Foreign(_)) && self.0.offset > 0
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { file, fault, .. } = &*self.0;
        match fault {
            Fault::Open(error) => write!(f, "{file} cannot be opened: {error}; check the path"),
            Fault::Foreign(what) => write!(f, "{file} is no capture: {what}"),
            Fault::Read(error) => {
                write!(f, "{file} cannot be read on at {}: {error}; try a copy of it", self.place())
            }
            Fault::Truncated(what) => write!(
                f,
                "{file} ends too early at {}: {what}; what stands before was read, get the whole \
                 file for the rest",
                self.place()
            ),
            Fault::Damaged(what) => write!(
                f,
                "{file} is damaged at {}: {what}; what stands before was read, get the file again \
                 for the rest",
                self.place()
            ),
            Fault::Unsupported(what) => {
                write!(f, "{file} cannot be read at {}: {what}", self.place())
            }
        }
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.fault {
            Fault::Open(error) | Fault::Read(error) => Some(error),
            _ => None,
        }
    }
}

impl CaptureError {
    fn place(&self) -> Place<'_> {
        Place(&self.0)
    }
}

struct Place<'a>(&'a Inner);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}", self.0.offset)?;
        match self.0.compression {
            Some(compression) => write!(f, " of what {compression} unpacks"),
            None => Ok(()),
        }
    }
}
