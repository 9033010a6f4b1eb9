//! Holes: missing pages of a sparse memory file that another process shares.
//!
//! The system allocates a missing page when a process first touches it, and charges the page to that process
//! until the file is gone. So a front end could exhaust the memory limit of this process's control group by its
//! own files. Therefore a file with holes is refused ([`refuse`]). A page that goes missing later is never
//! allocated by this process: an access to it raises SIGBUS, like an access beyond the end of the file
//! ([`watch`], by `userfaultfd`).
//!
//! Contract: [`prepare`] must be called before the process gives up its privileges. Huge pages come from a
//! separate pool, and are not checked.
#![allow(unsafe_code, reason = "userfaultfd has no safe interface")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::sys::check;

/// The size of a block in `st_blocks`, in bytes; equal for all file systems.
const BLOCK_BYTES: u64 = 512;

/// Checks that the byte range `range` of a file in memory has no holes.
///
/// # Errors
/// If the range has a hole; the error contains the remedy.
pub(super) fn refuse(file: &File, range: &Range<u64>) -> io::Result<()> {
    let metadata = file.metadata()?;
    // Pages that were allocated but never written look like holes here.
    if metadata.blocks() * BLOCK_BYTES >= metadata.len() {
        return Ok(());
    }
    let start = libc::off_t::try_from(range.start).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the call takes only numbers. It moves the position in the file, which neither process uses.
    let hole = unsafe { libc::lseek(file.as_raw_fd(), start, libc::SEEK_HOLE) };
    if u64::try_from(hole).is_ok_and(|hole| hole >= range.end) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it has holes, whose pages would be charged to rxo; allocate them (prealloc=on in QEMU), or allow \
         it (--vhost …,memory=2G,sparse=yes, or --memory 2G --sparse of rxo run)",
    ))
}

/// The `userfaultfd` descriptor that watches mappings, opened once; `None` if the system refuses one.
static WATCHER: OnceLock<Option<OwnedFd>> = OnceLock::new();

/// Opens the descriptor that [`watch`] needs. Returns `false` if the system refuses (before Linux 5.11).
/// Later holes are then allocated, and charged to this process.
pub(crate) fn prepare() -> bool {
    WATCHER.get_or_init(|| open().ok()).is_some()
}

/// Makes accesses to missing pages of a mapped file raise SIGBUS from now on. The range of `bytes` bytes from
/// `start` must consist of whole pages. Does nothing if the system does not support such mappings.
///
/// # Errors
/// If the system refuses.
///
/// # Safety
/// The range must belong to a mapping that only this process uses, and whose accesses may raise SIGBUS.
pub(super) unsafe fn watch(start: NonNull<u8>, bytes: usize) -> io::Result<()> {
    let Some(Some(watcher)) = WATCHER.get() else { return Ok(()) };
    let start = start.as_ptr().expose_provenance() as u64;
    let mut register = Register { start, bytes: bytes as u64, mode: MISSING, ioctls: 0 };
    // SAFETY: the structure is live and has the layout that the request needs.
    check(unsafe { libc::ioctl(watcher.as_raw_fd(), REGISTER as _, &raw mut register) })?;
    Ok(())
}

fn open() -> io::Result<OwnedFd> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
    // SAFETY: the call takes only numbers.
    let fd = check(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) as libc::c_int })?;
    // SAFETY: the descriptor is new and has no other owner.
    let watcher = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut api = Api { api: API_VERSION, features: SIGBUS | MISSING_SHMEM, ioctls: 0 };
    // SAFETY: the structure is live and has the layout that the request needs.
    check(unsafe { libc::ioctl(watcher.as_raw_fd(), API as _, &raw mut api) })?;
    Ok(watcher)
}

/// The structure `uffdio_api` of linux/userfaultfd.h.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// The structure `uffdio_register` of linux/userfaultfd.h.
#[repr(C)]
struct Register {
    start: u64,
    bytes: u64,
    mode: u64,
    ioctls: u64,
}

/// The flag `UFFD_USER_MODE_ONLY`. Without the flag, the call needs a privilege. With the flag, system calls
/// that access a missing page fail.
const USER_MODE_ONLY: libc::c_int = 1;
const API_VERSION: u64 = 0xaa;
/// The feature `UFFD_FEATURE_SIGBUS`: a missing page raises a signal, instead of sending a message (Linux
/// 4.14).
const SIGBUS: u64 = 1 << 7;
/// The feature `UFFD_FEATURE_MISSING_SHMEM`: missing pages of files in memory (Linux 4.11).
const MISSING_SHMEM: u64 = 1 << 5;
const MISSING: u64 = 1;
/// The numbers of the requests `UFFDIO_API` and `UFFDIO_REGISTER`.
const API: u32 = 0xc018_aa3f;
const REGISTER: u32 = 0xc020_aa00;
