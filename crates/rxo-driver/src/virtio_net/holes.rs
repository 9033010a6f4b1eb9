//! Holes in the memory of another process: pages that its file does not have yet.
//!
//! The system takes a page that is missing from whoever touches it first, and charges it to that process until the file
//! is gone. A front end could so fill the memory of this process's control group with files of its own. Therefore a file
//! with holes is refused ([`refuse`]), and a page that goes missing later is never made by this process: an access to it
//! raises SIGBUS, as one beyond the end of the file does (`Watch`, by `userfaultfd`).
//!
//! Contract: [`prepare`] comes before the process gives up its privileges. Huge pages come from a pool of their own, and
//! are not checked.
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
/// If it has one, with the remedy.
pub(super) fn refuse(file: &File, range: &Range<u64>) -> io::Result<()> {
    let metadata = file.metadata()?;
    // Pages that were allocated and never written look like holes below.
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

/// The descriptor that watches mappings; `None` if the system has none. Opened once.
static WATCHER: OnceLock<Option<OwnedFd>> = OnceLock::new();

/// Opens what [`watch`] needs. Returns `false` if the system refuses (before Linux 5.11): then holes that appear later are
/// filled at the cost of this process.
pub(crate) fn prepare() -> bool {
    WATCHER.get_or_init(|| open().ok()).is_some()
}

/// From now on an access to a page that the file of a mapping does not have raises SIGBUS. `start` and `bytes` are whole
/// pages. Does nothing if the system cannot do it.
///
/// # Errors
/// As the system refuses.
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

/// Without it the call needs a privilege. Accesses by the system in the name of this process fail instead.
const USER_MODE_ONLY: libc::c_int = 1;
const API_VERSION: u64 = 0xaa;
/// Signals in place of messages (Linux 4.14).
const SIGBUS: u64 = 1 << 7;
/// Files in memory (Linux 4.11).
const MISSING_SHMEM: u64 = 1 << 5;
const MISSING: u64 = 1;
/// `UFFDIO_API` and `UFFDIO_REGISTER`.
const API: u32 = 0xc018_aa3f;
const REGISTER: u32 = 0xc020_aa00;
