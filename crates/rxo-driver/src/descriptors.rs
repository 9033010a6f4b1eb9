//! Descriptors sent over unix sockets together with bytes.
//!
//! This module is separate because guests send descriptors, and so do the processes of a run. Contract: every
//! received descriptor has an owner, and is closed when it is dropped.
#![allow(
    unsafe_code,
    reason = "descriptors travel in control messages, which are made of pointers"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Maximum number of descriptors that one message may carry: the number of memory regions in a vhost-user
/// memory table.
pub const MOST_DESCRIPTORS: usize = 8;

/// Maximum number of descriptors that the kernel sends with a message (SCM_MAX_FD). Space for all of them is
/// provided. Otherwise the kernel would close the excess descriptors inside the system call, and closing a
/// descriptor of another process may block.
const MOST_RECEIVED: usize = 253;

/// Returns the size of the control message for `descriptors` descriptors, in 8-byte words.
const fn control_words(descriptors: usize) -> usize {
    2 + descriptors.div_ceil(2)
}

/// Bytes received from a socket, and the descriptors that came with them.
#[derive(Debug)]
pub(crate) struct Received {
    /// The number of received bytes; 0 if the other end has closed the socket.
    pub(crate) count: usize,
    pub(crate) files: Vec<OwnedFd>,
    /// `true` if the control message was truncated: the kernel closed descriptors for which there was no space.
    pub(crate) is_cut: bool,
}

/// Receives bytes into `target`, and the descriptors that come with them. `flags` are those of `recvmsg`.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    target: &mut [u8],
    flags: libc::c_int,
) -> io::Result<Received> {
    let mut control = [0_u64; control_words(MOST_RECEIVED)];
    let mut piece = libc::iovec { iov_base: target.as_mut_ptr().cast(), iov_len: target.len() };
    let mut message = message_of(&mut piece, &mut control);
    let flags = flags | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: the message points to a live target and to live control memory, each of its length.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled in `message` and `control`.
    let files = unsafe { take_descriptors(&message) };
    Ok(Received { count, files, is_cut: message.msg_flags & libc::MSG_CTRUNC != 0 })
}

/// Takes ownership of the descriptors of a received message.
///
/// # Safety
/// `recvmsg` must have filled in `message`, once, and its control memory must be live.
unsafe fn take_descriptors(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut taken = Vec::new();
    // SAFETY: the caller guarantees that the kernel wrote the headers, and that their memory is live.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: `CMSG_FIRSTHDR` and `CMSG_NXTHDR` return null or a whole header in that memory.
    while let Some(one) = unsafe { header.as_ref() } {
        if (one.cmsg_level, one.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            // SAFETY: the call takes only a number.
            let before = unsafe { libc::CMSG_LEN(0) } as usize;
            // The integer type of the length depends on the C library.
            let length: usize = one.cmsg_len as _;
            let count = length.saturating_sub(before) / size_of::<RawFd>();
            // SAFETY: the data of the header begins there.
            let data = unsafe { libc::CMSG_DATA(header) };
            for n in 0..count {
                // SAFETY: `cmsg_len` says that the data has `count` descriptors, aligned or not.
                let fd = unsafe { data.cast::<RawFd>().add(n).read_unaligned() };
                // SAFETY: the kernel made the descriptor for this process, and it has no other owner.
                taken.push(unsafe { OwnedFd::from_raw_fd(fd) });
            }
        }
        // SAFETY: `header` is one of the headers of `message`.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    taken
}

/// Sends all of `bytes` together with `files`, without blocking.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut control = [0_u64; control_words(MOST_RECEIVED)];
    let mut piece =
        libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut message = message_of(&mut piece, &mut control);
    if files.is_empty() {
        (message.msg_control, message.msg_controllen) = (std::ptr::null_mut(), 0);
    } else if files.len() > MOST_RECEIVED {
        return Err(io::ErrorKind::InvalidInput.into());
    } else {
        let file_bytes = size_of_val(files) as u32;
        // SAFETY: the call takes only a number.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(file_bytes) } as _;
        // SAFETY: the control memory is live and has space for a header and the descriptors.
        unsafe { put_descriptors(&message, files) };
    }
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the message points to live bytes and control memory, each of its length.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    match usize::try_from(sent) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        // A message is far smaller than the socket's buffer, so the other side has stopped reading.
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Writes the descriptors of `files` into the control message.
///
/// # Safety
/// The control memory of `message` must be live, writable, aligned for a header, and large enough.
unsafe fn put_descriptors(message: &libc::msghdr, files: &[BorrowedFd<'_>]) {
    let bytes = size_of_val(files) as u32;
    // SAFETY: the caller guarantees space for one header, so this is not null.
    let header = unsafe { &mut *libc::CMSG_FIRSTHDR(message) };
    (header.cmsg_level, header.cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
    // SAFETY: the call takes only a number.
    header.cmsg_len = unsafe { libc::CMSG_LEN(bytes) } as _;
    // SAFETY: the data follows the header.
    let data = unsafe { libc::CMSG_DATA(header) };
    for (n, file) in files.iter().enumerate() {
        // SAFETY: the caller guarantees space for all descriptors.
        unsafe { data.cast::<RawFd>().add(n).write_unaligned(file.as_raw_fd()) };
    }
}

fn message_of(piece: &mut libc::iovec, control: &mut [u64]) -> libc::msghdr {
    // SAFETY: a structure of integers and pointers, for which zeros are valid.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    (message.msg_iov, message.msg_iovlen) = (piece, 1);
    (message.msg_control, message.msg_controllen) =
        (control.as_mut_ptr().cast(), size_of_val(control) as _);
    message
}
