//! Holes in the memory of another process: pages that its file does not have yet.
//!
//! The system allocates a missing page when a process first touches it, and charges it to that process until
//! the file is gone. So a front end could fill the memory of this process's control group with files of its
//! own. Therefore a file with holes is refused ([`refuse`]), and a page that goes missing later is never
//! allocated by this process: an access to it raises SIGBUS, as an access beyond the end of the file does
//! ([`watch`], by `userfaultfd`).
//!
//! Contract: [`prepare`] must be called before the process gives up its privileges. Huge pages come from a
//! pool of their own, and are not checked.
#![allow(unsafe_code, reason = "userfaultfd has no safe interface")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::sys::check;

/// The bytes of a block in `st_blocks`, whatever the file system.
const BLOCK_BYTES: u64 = 512;

/// Checks that `range` of a file in memory has no holes.
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
    // SAFETY: takes numbers only. The position in the file is of no use to either process.
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

/// The descriptor by which mappings are watched; `None` if the system has no such descriptor. Opened once.
static WATCHER: OnceLock<Option<OwnedFd>> = OnceLock::new();

/// Opens the descriptor that [`watch`] needs. Returns `false` if the system refuses (before Linux 5.11):
/// holes that appear later are then filled at the cost of this process.
pub(crate) fn prepare() -> bool {
    WATCHER.get_or_init(|| open().ok()).is_some()
}

/// Makes each access to a page that the file of a mapping does not have raise SIGBUS from now on. `start` and
/// `bytes` must be whole pages. Does nothing if the system does not support it.
///
/// # Errors
/// If the system refuses.
///
/// # Safety
/// The range must be a mapping of this process alone, whose accesses may raise SIGBUS.
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
    // SAFETY: takes numbers only.
    let fd = check(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) as libc::c_int })?;
    // SAFETY: the descriptor is new and nobody else's.
    let watcher = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut api = Api { api: API_VERSION, features: SIGBUS | MISSING_SHMEM, ioctls: 0 };
    // SAFETY: the structure is live and has the layout that the request needs.
    check(unsafe { libc::ioctl(watcher.as_raw_fd(), API as _, &raw mut api) })?;
    Ok(watcher)
}

/// `struct uffdio_api` of Linux.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register` of Linux.
#[repr(C)]
struct Register {
    start: u64,
    bytes: u64,
    mode: u64,
    ioctls: u64,
}

/// The flag `UFFD_USER_MODE_ONLY`: without it the call needs a privilege. With it, system calls that access
/// such a page fail.
const USER_MODE_ONLY: libc::c_int = 1;
const API_VERSION: u64 = 0xaa;
/// The feature `UFFD_FEATURE_SIGBUS`: signals instead of messages (Linux 4.14).
const SIGBUS: u64 = 1 << 7;
/// The feature `UFFD_FEATURE_MISSING_SHMEM`: files in memory (Linux 4.11).
const MISSING_SHMEM: u64 = 1 << 5;
const MISSING: u64 = 1;
/// The numbers of the requests `UFFDIO_API` and `UFFDIO_REGISTER`.
const API: u32 = 0xc018_aa3f;
const REGISTER: u32 = 0xc020_aa00;
