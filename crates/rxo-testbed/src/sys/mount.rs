//! Mounts that only the calling thread or process sees: `/sys` with the interfaces of the thread's network
//! namespace, and an empty `/run`.

use std::ffi::CStr;
use std::io;
use std::ptr::null;

use super::check;

/// Moves the calling thread into a mount namespace of its own, whose `/sys` shows the thread's network namespace. The
/// view of other threads and processes does not change.
pub(crate) fn show_own_network() -> io::Result<()> {
    separate()?;
    mount(c"sysfs", c"/sys", libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)
}

/// Moves the calling thread, and those that it starts, into a mount namespace of their own, whose `/run` is empty.
pub(crate) fn empty_run() -> io::Result<()> {
    separate()?;
    mount(c"tmpfs", c"/run", libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)
}

fn separate() -> io::Result<()> {
    // SAFETY: unshare takes no pointers; only the calling thread's view of the system changes.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    // A shared mount would also appear in the namespace that this one was copied from.
    mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)
}

/// Mounts a file system of the type `kind` at the path `at`, or changes the mount that is there.
fn mount(kind: &CStr, at: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let name = kind.as_ptr();
    // SAFETY: the strings end with zero and live through the call; neither file system takes data.
    check(unsafe { libc::mount(name, at.as_ptr(), name, flags, null()) })
}
