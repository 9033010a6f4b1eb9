//! Safe wrappers of system calls that neither the standard library nor `rxo-netlink` offers. All unsafe code of
//! this crate is in this module, which contains no logic of its own.
#![allow(unsafe_code, reason = "system calls that have no safe face elsewhere")]

mod epoll;
mod ethtool;
mod monitor;
mod mount;
mod packet;
mod socket;
mod tap;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

pub(crate) use epoll::{Epoll, Interest};
pub(crate) use ethtool::{get_feature, get_offload, set_feature, set_offload};
pub use monitor::MonitorSocket;
pub(crate) use mount::{empty_run, show_own_network};
pub use packet::{PacketSocket, wait_readable, wait_writable};
pub(crate) use socket::{
    drop_arrivals, force_receive_buffer_bytes, memory_bytes, retransmitted_segments, sender_info,
    set_buffer_bytes, set_congestion_control, set_max_pacing_rate, set_receive_low_water,
    take_arrivals, unacknowledged_bytes,
};
pub(crate) use tap::open_tap;
pub use tap::open_tun;

/// The resources that [`unshare`] separates from the rest of the system or of the process; see unshare(2).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unshare {
    /// The calling thread gets a new, empty network namespace.
    Network,
    /// The process gets a new user namespace and a new, empty network namespace. The process must have only
    /// one thread.
    UserAndNetwork,
    /// The calling thread, and the threads that it starts, get their own copy of the process's descriptors.
    Descriptors,
}

/// Separates the resources `what` of the calling thread.
pub(crate) fn unshare(what: Unshare) -> io::Result<()> {
    let flags = match what {
        Unshare::Network => libc::CLONE_NEWNET,
        Unshare::UserAndNetwork => libc::CLONE_NEWUSER | libc::CLONE_NEWNET,
        Unshare::Descriptors => libc::CLONE_FILES,
    };
    // SAFETY: unshare takes no pointers; only the calling thread's view of the system changes.
    check(unsafe { libc::unshare(flags) })
}

/// Moves the calling thread into the network namespace of the handle `namespace`.
pub(crate) fn enter_network(namespace: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call and setns takes no pointers.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })
}

/// Returns the effective user and group of the process.
pub(crate) fn effective_ids() -> (u32, u32) {
    // SAFETY: neither call takes arguments or can fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Returns the system's id of the calling thread.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: gettid takes no arguments and cannot fail.
    unsafe { libc::gettid() }.unsigned_abs()
}

/// Pins the calling thread to one core.
pub(crate) fn pin_to_core(core: usize) -> io::Result<()> {
    let size = size_of::<libc::cpu_set_t>();
    if core >= size * 8 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` is below the number of bits in the set.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the kernel reads `size` bytes of `set`, which lives through the call.
    check(unsafe { libc::sched_setaffinity(0, size, &raw const set) })
}

/// Returns the processor time used by this process so far, including threads that have ended.
pub(crate) fn process_cpu_time() -> io::Result<Duration> {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the processor time used by a thread of this process so far.
pub(crate) fn thread_cpu_time(thread: u32) -> io::Result<Duration> {
    // Composes the clock id of a thread as Linux does (clock_getcpuclockid(3) does so for
    // processes): bit 2 means "thread", 2 means "scheduler time".
    clock((!thread.cast_signed() << 3) | 4 | 2)
}

fn clock(id: libc::clockid_t) -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec, which lives through the call.
    check(unsafe { libc::clock_gettime(id, &raw mut time) })?;
    Ok(Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0)))
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
