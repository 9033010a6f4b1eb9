//! System calls behind safe functions: sockets, socket options, ioctls.
//!
//! This module is separate so that the rest of the crate calls the kernel without pointers. Contract: every
//! call returns the system's error as `io::Error`, and none blocks.
#![allow(unsafe_code, reason = "system calls take pointers; every one is made here or in a leaf")]

use std::ffi::CString;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libc::{c_int, c_ulong, ifreq, socklen_t};

/// A C structure for which any bytes are a valid value.
///
/// # Safety
/// Implement it only for types for which every bit pattern is valid and that contain no references.
pub(crate) unsafe trait Plain: Copy {
    /// Returns the value of this type whose bytes are all zero.
    fn zeroed() -> Self {
        // SAFETY: the trait promises that any bytes, zeros too, are a value.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }
}

// SAFETY: the structure has only an integer.
unsafe impl Plain for c_int {}
// SAFETY: the structure has only integers.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: the structure has only integers.
unsafe impl Plain for libc::sockaddr_un {}
// SAFETY: the structure has only integers.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: the structure has only integers.
unsafe impl Plain for libc::ip_mreqn {}
// SAFETY: the structure has only integers.
unsafe impl Plain for libc::ipv6_mreq {}
// SAFETY: the structure has only integers.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: the structure has only integers.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: the structure has only integers.
unsafe impl Plain for libc::sockaddr_xdp {}
// SAFETY: the structure has only integers.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: the structure has only integers.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: the structure has only integers.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: the structure has a name in bytes and a union of integers, addresses and one pointer that only the
// kernel follows.
unsafe impl Plain for ifreq {}

/// Converts the result of a C function: a negative value becomes the system's last error.
pub(crate) fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Opens a socket, non-blocking and closed on exec.
pub(crate) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes only integers.
    let fd = check(unsafe { libc::socket(domain, kind, protocol) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes a descriptor non-blocking. This also applies to all duplicates of the descriptor.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut is_on: c_int = 1;
    // SAFETY: this request reads an `int`.
    unsafe { ioctl(fd, libc::FIONBIO as c_ulong, &mut is_on) }?;
    Ok(())
}

/// Moves this thread to a new network namespace, which the kernel removes when the thread ends.
pub(crate) fn own_network() -> io::Result<()> {
    // SAFETY: the call takes only an integer.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    Ok(())
}

/// Checks that this process may create files in `folder` or, if that does not exist, may create the folder.
/// Creates nothing.
pub(crate) fn may_make(folder: &Path) -> io::Result<()> {
    match may_write(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            folder.parent().map_or(Err(error), may_write)
        }
        other => other,
    }
}

fn may_write(folder: &Path) -> io::Result<()> {
    let path = CString::new(folder.as_os_str().as_bytes())?;
    let (access, flags) = (libc::W_OK | libc::X_OK, libc::AT_EACCESS);
    // SAFETY: the path ends with a zero and lives through the call.
    check(unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), access, flags) })?;
    Ok(())
}

/// Returns the size of a memory page, in bytes.
pub(crate) fn page_bytes() -> u32 {
    // SAFETY: the call takes only an integer.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u32::try_from(bytes).ok().filter(|bytes| *bytes >= SMALLEST_PAGE).unwrap_or(SMALLEST_PAGE)
}

const SMALLEST_PAGE: u32 = 4_096;

/// Binds a socket to `address`, whose type must match the socket's address family.
pub(crate) fn bind<A: Plain>(fd: BorrowedFd<'_>, address: &A) -> io::Result<()> {
    let bytes = size_of::<A>() as socklen_t;
    // SAFETY: the address is a live structure of the length given.
    check(unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(address).cast(), bytes) })?;
    Ok(())
}

/// Connects a unix socket to the listening socket at `path`.
pub(crate) fn connect_unix(fd: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let address = unix_address(path)?;
    let bytes = size_of::<libc::sockaddr_un>() as socklen_t;
    // SAFETY: the address is a live structure of the length given.
    check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), bytes) })?;
    Ok(())
}

/// Binds a unix socket to `path`, where no file may exist, and listens. At most `waiting` connections wait to
/// be accepted.
pub(crate) fn listen_unix(fd: BorrowedFd<'_>, path: &Path, waiting: c_int) -> io::Result<()> {
    let address = unix_address(path)?;
    let bytes = size_of::<libc::sockaddr_un>() as socklen_t;
    // SAFETY: the address is a live structure of the length given.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), bytes) })?;
    // SAFETY: the call takes only integers.
    check(unsafe { libc::listen(fd.as_raw_fd(), waiting) })?;
    Ok(())
}

/// Builds the address of a unix socket.
///
/// # Errors
/// If the path is too long for a socket address.
fn unix_address(path: &Path) -> io::Result<libc::sockaddr_un> {
    let mut address = libc::sockaddr_un::zeroed();
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    // A zero byte must follow the path.
    if bytes.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as _;
    }
    Ok(address)
}

/// Returns the index of the interface that a packet socket is bound to; -1 if the interface was deleted.
pub(crate) fn bound_interface(fd: BorrowedFd<'_>) -> io::Result<c_int> {
    let mut address = libc::sockaddr_ll::zeroed();
    let mut bytes = size_of::<libc::sockaddr_ll>() as socklen_t;
    let target = std::ptr::from_mut(&mut address).cast();
    // SAFETY: the kernel writes at most `bytes` into a live structure of integers.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), target, &raw mut bytes) })?;
    Ok(address.sll_ifindex)
}

/// Sets the option `name` of a socket at protocol level `level`.
pub(crate) fn set_option<T: Plain>(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: &T,
) -> io::Result<()> {
    let bytes = size_of::<T>() as socklen_t;
    // SAFETY: the kernel reads at most `bytes` from a live value.
    check(unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), bytes)
    })?;
    Ok(())
}

/// Sets a socket option whose value is a classic BPF filter.
pub(crate) fn set_filter(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    filter: &[libc::sock_filter],
) -> io::Result<()> {
    let len = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    let bytes = size_of::<libc::sock_fprog>() as socklen_t;
    // SAFETY: the kernel reads a live structure of `bytes`, and the `len` steps to which it points.
    check(unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(&program).cast(), bytes)
    })?;
    Ok(())
}

/// Reads the option `name` of a socket at protocol level `level`.
pub(crate) fn option<T: Plain>(fd: BorrowedFd<'_>, level: c_int, name: c_int) -> io::Result<T> {
    let mut value = T::zeroed();
    let mut bytes = size_of::<T>() as socklen_t;
    let target = std::ptr::from_mut(&mut value).cast();
    // SAFETY: the kernel writes at most `bytes` into a live value for which any bytes will do.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, target, &raw mut bytes) })?;
    Ok(value)
}

/// Returns and clears the pending error of a socket; `None` if there is none.
pub(crate) fn pending_error(fd: BorrowedFd<'_>) -> Option<io::Error> {
    match option::<c_int>(fd, libc::SOL_SOCKET, libc::SO_ERROR) {
        Ok(0) => None,
        Ok(code) => Some(io::Error::from_raw_os_error(code)),
        Err(error) => Some(error),
    }
}

/// Reads one frame from a socket's queue, without blocking. Bytes that do not fit into `target` are lost.
/// Returns the length of the whole frame.
pub(crate) fn receive(fd: BorrowedFd<'_>, target: &mut [u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: the kernel writes at most as many bytes as the target has.
    let read =
        unsafe { libc::recv(fd.as_raw_fd(), target.as_mut_ptr().cast(), target.len(), flags) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Asks the kernel to send the frames in a socket's ring (kick). Does not block.
pub(crate) fn kick(fd: BorrowedFd<'_>) -> io::Result<()> {
    let (none, flags) = (std::ptr::null(), libc::MSG_DONTWAIT);
    // SAFETY: the call reads no byte and no address.
    let sent = unsafe { libc::sendto(fd.as_raw_fd(), none, 0, flags, std::ptr::null(), 0) };
    check(sent as c_int).map(drop)
}

/// Returns the number of bytes sent on a socket that the kernel has not freed yet, including the overhead of
/// each packet (SIOCOUTQ, which has the same value as TIOCOUTQ).
pub(crate) fn unsent_bytes(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: c_int = 0;
    // SAFETY: the argument of this request is an `int`.
    unsafe { ioctl(fd, libc::TIOCOUTQ as _, &mut bytes)? };
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Sends messages by one call, without blocking. Returns the number of messages that the kernel accepted.
/// Bypasses the C library, because musl makes one system call for each message.
///
/// # Safety
/// Every header must point to memory that is live and of the lengths that it states.
///
/// # Errors
/// If the kernel refuses the first message.
pub(crate) unsafe fn send_messages(
    socket: BorrowedFd<'_>,
    headers: &mut [libc::mmsghdr],
    flags: c_int,
) -> io::Result<usize> {
    let flags = flags | libc::MSG_DONTWAIT;
    // SAFETY: the headers are live, and the caller guarantees that the memory they point to is, too. The
    // kernel's layout is that of the C library, whose padding callers leave zero.
    let sent = unsafe {
        let (fd, count) = (socket.as_raw_fd(), headers.len());
        libc::syscall(libc::SYS_sendmmsg, fd, headers.as_mut_ptr(), count, flags)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Calls an ioctl whose argument the kernel reads or writes in place.
///
/// # Safety
/// `request` must be one whose argument is a `T`.
pub(crate) unsafe fn ioctl<T>(
    fd: BorrowedFd<'_>,
    request: c_ulong,
    argument: &mut T,
) -> io::Result<c_int> {
    // SAFETY: the caller guarantees that the request's argument is a `T`; `argument` is live.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), request as _, std::ptr::from_mut(argument)) })
}

/// Calls an ioctl whose argument is a number, not a pointer.
///
/// # Safety
/// `request` must not use its argument as an address.
pub(crate) unsafe fn ioctl_number(
    fd: BorrowedFd<'_>,
    request: c_ulong,
    argument: c_ulong,
) -> io::Result<c_int> {
    // SAFETY: the caller guarantees that this request takes its argument as a number.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), request as _, argument) })
}

/// Builds an `ifreq` with the name of an interface; `None` if the name is empty, longer than 15 bytes, or
/// contains a zero byte.
pub(crate) fn interface_request(name: &str) -> Option<ifreq> {
    let mut request = ifreq::zeroed();
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.as_bytes().contains(&0) {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as _;
    }
    Some(request)
}
