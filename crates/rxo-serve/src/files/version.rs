//! One version of a file, and reading from exactly that.
//!
//! A version is told by what its file system records. Its clock advances in steps, so a change within the step
//! of the one before does not show. Nothing is read in that time: each later change has a later time, and is
//! seen when the version is checked behind the read. No page is ever of two versions, nor an answer.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::{CLOCK_TICK, PIECE_BYTES, Patience};

/// A version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileVersion {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds.
    changed: (i64, i64),
}

impl FileVersion {
    pub(super) fn of(file: &Metadata) -> Self {
        let changed = (file.mtime(), file.mtime_nsec());
        Self { device: file.dev(), inode: file.ino(), bytes: file.len(), changed }
    }

    /// Reads page `index` into `buffer`. `None` if that might wait and must not.
    ///
    /// # Errors
    /// If the file cannot be read, or is another version now.
    pub(super) fn read(
        &self,
        file: &File,
        index: u64,
        buffer: Vec<u8>,
        patience: Patience,
    ) -> Option<io::Result<Vec<u8>>> {
        if let Some(rest) = self.unsettled() {
            match patience {
                Patience::Waits => thread::sleep(rest),
                Patience::None => return None,
            }
        }
        match self.read_settled(file, index, buffer, patience) {
            Err(error) if patience == Patience::None && would_wait(&error) => None,
            read => Some(read),
        }
    }

    fn read_settled(
        &self,
        file: &File,
        index: u64,
        mut buffer: Vec<u8>,
        patience: Patience,
    ) -> io::Result<Vec<u8>> {
        let from = index.saturating_mul(PIECE_BYTES as u64);
        let length = self.bytes.saturating_sub(from).min(PIECE_BYTES as u64) as usize;
        buffer.resize(length, 0);
        fill(file, &mut buffer, from, patience)?;
        if Self::of(&file.metadata()?) == *self { Ok(buffer) } else { Err(changed()) }
    }

    /// How long another change could still have the same time; `None` if it cannot.
    fn unsettled(&self) -> Option<Duration> {
        let (seconds, nanos) = self.changed;
        let changed = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
        // A time ahead of the clock was set by somebody; the next change has another.
        let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + changed).ok()?;
        CLOCK_TICK.checked_sub(age).filter(|rest| !rest.is_zero())
    }
}

fn fill(file: &File, into: &mut [u8], from: u64, patience: Patience) -> io::Result<()> {
    let flags = match patience {
        Patience::Waits => ReadWriteFlags::empty(),
        Patience::None => ReadWriteFlags::NOWAIT,
    };
    let mut filled = 0;
    while filled < into.len() {
        let rest = &mut [IoSliceMut::new(&mut into[filled..])];
        match preadv2(file, rest, from + filled as u64, flags) {
            Ok(0) => return Err(changed()),
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// OPNOTSUPP: this file system cannot say whether it would wait.
fn would_wait(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::AGAIN | Errno::OPNOTSUPP))
}

fn changed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the file has changed while it was sent")
}
