//! Identifies one version of a file, and reads from exactly that version.
//!
//! A version consists of metadata that the file system records. Programs cannot set one of its fields: `ctime`,
//! the time of the file's last change of any kind. The clock for `ctime` advances in ticks, so a second change
//! within one tick is invisible. Pages read during such a tick are not cached. Any later change has a later
//! `ctime`, which the check after each read detects. So no page and no answer mixes two versions.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use rustix::io::{Errno, ReadWriteFlags, preadv2};

use super::{CLOCK_TICK, DiskWait, PIECE_BYTES};

/// Identifies a version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileVersion {
    device: u64,
    inode: u64,
    bytes: u64,
    /// The time of the last change of the content, or the time that a program has set, in seconds and
    /// nanoseconds.
    modified: (i64, i64),
    /// The time of the last change of anything in the file (`ctime`), as recorded by the file system.
    changed: (i64, i64),
}

/// The reliability of a version's time of change: it is reliable if every later change gets a different time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Every later change of the file gets a later time.
    Settled,
    /// A later change of the file gets a later time if it happens after this duration.
    Settles(Duration),
    /// The reliability is unknown, because the file system's clock is ahead of this system's clock.
    Ahead,
}

impl FileVersion {
    pub(super) fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// Reads page `index` of this version of `file` into `buffer`. `None` if the call would have to wait for
    /// the disk and `disk_wait` forbids it.
    ///
    /// # Errors
    /// If the file cannot be read, or is another version now.
    pub(super) fn read(
        &self,
        file: &File,
        index: u64,
        buffer: Vec<u8>,
        disk_wait: DiskWait,
    ) -> Option<io::Result<Vec<u8>>> {
        match self.read_and_check(file, index, buffer, disk_wait) {
            Err(error) if disk_wait == DiskWait::None && would_wait(&error) => None,
            read => Some(read),
        }
    }

    fn read_and_check(
        &self,
        file: &File,
        index: u64,
        mut buffer: Vec<u8>,
        disk_wait: DiskWait,
    ) -> io::Result<Vec<u8>> {
        let from = index.saturating_mul(PIECE_BYTES as u64);
        let length = self.bytes.saturating_sub(from).min(PIECE_BYTES as u64) as usize;
        // A small page must not keep the memory of a large one.
        if buffer.capacity() > 2 * length {
            buffer = Vec::new();
        }
        buffer.resize(length, 0);
        fill(file, &mut buffer, from, disk_wait)?;
        if self.is_still(&file.metadata()?) { Ok(buffer) } else { Err(changed()) }
    }

    /// Returns `true` if the file is still in this version. Removing the file, or renaming another file over
    /// it, changes its `ctime` but not its content, so `ctime` is ignored then.
    fn is_still(&self, now: &Metadata) -> bool {
        let now_is = Self::of(now);
        let is_removed = now.nlink() == 0;
        let changed = if is_removed { self.changed } else { now_is.changed };
        *self == Self { changed, ..now_is }
    }

    /// Returns the reliability of this version's time of change, for a further change at `now`.
    pub(super) fn stamp(&self, now: SystemTime) -> Stamp {
        let (seconds, nanos) = self.changed;
        // A time before 1970 is settled.
        let Ok(seconds) = u64::try_from(seconds) else { return Stamp::Settled };
        // Without nanoseconds, the file system may record whole seconds only.
        let tick = if nanos == 0 { COARSE_TICK } else { CLOCK_TICK };
        let settled = Duration::new(seconds, u32::try_from(nanos).unwrap_or_default()) + tick;
        let Some(settled) = SystemTime::UNIX_EPOCH.checked_add(settled) else {
            return Stamp::Ahead;
        };
        match settled.duration_since(now).unwrap_or_default() {
            Duration::ZERO => Stamp::Settled,
            rest if rest <= MOST_REST => Stamp::Settles(rest),
            _ => Stamp::Ahead,
        }
    }
}

fn fill(file: &File, into: &mut [u8], from: u64, disk_wait: DiskWait) -> io::Result<()> {
    let flags = match disk_wait {
        DiskWait::Waits => ReadWriteFlags::empty(),
        DiskWait::None => ReadWriteFlags::NOWAIT,
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

/// Returns `true` if a read failed because it would have to wait for the disk. `EOPNOTSUPP`: the file system
/// does not support reads that never wait.
fn would_wait(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::AGAIN | Errno::OPNOTSUPP))
}

fn changed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the file has changed while it was sent")
}

/// The longest tick of a file system's clock: the tick of vfat.
const COARSE_TICK: Duration = Duration::from_secs(2);
/// The maximum time to wait until a version is settled. A file system's clock that is further ahead is
/// considered a different clock.
const MOST_REST: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_settles_a_tick_after_its_change() {
        let changed_at = |seconds, nanos| {
            let any = FileVersion::of(&std::fs::metadata("/").unwrap());
            FileVersion { changed: (seconds, nanos), ..any }
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let rest = |millis| Stamp::Settles(Duration::from_millis(millis));
        let rows = [
            (changed_at(999, 979_999_999), Stamp::Settled),
            (changed_at(999, 985_000_000), rest(5)),
            // The change came after `now` was read, or the clock is slightly ahead.
            (changed_at(1_000, 100_000_000), rest(120)),
            // Whole seconds may be the tick of the clock, or two of them.
            (changed_at(1_000, 0), rest(2_000)),
            (changed_at(999, 0), rest(1_000)),
            (changed_at(998, 0), Stamp::Settled),
            (changed_at(1_005, 1), Stamp::Ahead),
            (changed_at(i64::MAX, 999_999_999), Stamp::Ahead),
            (changed_at(-1, 999_999_999), Stamp::Settled),
        ];
        for (version, stamp) in rows {
            assert_eq!(version.stamp(now), stamp, "{:?}", version.changed);
        }
    }

    #[test]
    fn a_small_page_has_no_more_memory_than_it_needs() {
        let path = std::env::temp_dir().join(format!("rxo-serve-small-{}", std::process::id()));
        std::fs::write(&path, b"hello").unwrap();
        let file = File::open(&path).unwrap();
        let version = FileVersion::of(&file.metadata().unwrap());
        let spare = Vec::with_capacity(PIECE_BYTES);
        let page = version.read(&file, 0, spare, DiskWait::Waits).unwrap().unwrap();
        assert!(page == b"hello" && page.capacity() <= 64, "{}", page.capacity());
        std::fs::remove_file(path).unwrap();
    }
}
