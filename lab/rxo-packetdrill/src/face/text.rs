//! All calls that read or write: read, recv, recvfrom, recvmsg, readv, and their counterparts.

use std::ffi::{c_int, c_void};

use libc::{cmsghdr, iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use super::session::Session;
use super::{bytes_at, guarded, place_at};
use crate::abi::{Errno, MSG_PEEK, TCP_INQ};
use crate::host::{Answer, Call};

/// The pieces of a scattered buffer.
///
/// # Safety
/// `pieces` is null or points to `count` pieces that are readable for `'a`.
unsafe fn pieces_at<'a>(pieces: *const iovec, count: usize) -> Result<&'a [iovec], Errno> {
    if count > MOST_PIECES {
        return Err(Errno::EINVAL);
    }
    if count == 0 {
        return Ok(&[]);
    }
    if pieces.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: not null; the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts(pieces, count) })
}

/// Reads into `pieces` in order.
///
/// # Safety
/// Each piece is writable or null.
unsafe fn receive(
    session: &Session,
    fd: c_int,
    pieces: &[iovec],
    flags: c_int,
) -> Result<Answer, Errno> {
    let bytes = pieces.iter().map(|piece| piece.iov_len).sum();
    let is_nowhere = |piece: &iovec| piece.iov_base.is_null() && piece.iov_len > 0;
    if pieces.iter().any(is_nowhere) {
        // What does not fit into the pieces stays unread.
        let peeked = session.call(|find| Call::Read(find(fd), bytes, flags | MSG_PEEK))?;
        return if peeked.data.is_empty() { Ok(peeked) } else { Err(Errno::EFAULT) };
    }
    let answer = session.call(|find| Call::Read(find(fd), bytes, flags))?;
    let mut rest = answer.data.as_slice();
    for piece in pieces {
        let (part, next) = rest.split_at(piece.iov_len.min(rest.len()));
        // SAFETY: the caller guarantees that it is writable; `part` is not longer.
        unsafe { place_at(piece.iov_base, part.len()) }?.copy_from_slice(part);
        rest = next;
    }
    Ok(answer)
}

/// Writes `rest`, the number of unread bytes, into a control message. Does nothing if `rest` is
/// `None` or there is no room, like Linux.
///
/// # Safety
/// `message.msg_control` is null or points to `msg_controllen` writable bytes.
unsafe fn put_rest(message: &mut msghdr, rest: Option<i32>) -> Result<(), Errno> {
    let room = core::mem::replace(&mut message.msg_controllen, 0);
    let header_bytes = size_of::<cmsghdr>();
    let bytes = header_bytes + size_of::<c_int>();
    let space = bytes.next_multiple_of(align_of::<cmsghdr>());
    let Some(rest) = rest.filter(|_| !message.msg_control.is_null() && room as usize >= space)
    else {
        return Ok(());
    };
    let mut image = Vec::with_capacity(space);
    image.extend(bytes.to_ne_bytes());
    image.extend(libc::IPPROTO_TCP.to_ne_bytes());
    image.extend(TCP_INQ.to_ne_bytes());
    image.extend(rest.to_ne_bytes());
    image.resize(space, 0);
    // SAFETY: the caller guarantees that this many bytes are writable.
    unsafe { place_at(message.msg_control, space) }?.copy_from_slice(&image);
    message.msg_controllen = space as _;
    Ok(())
}

/// Writes the contents of `pieces`.
///
/// # Safety
/// Each piece is readable or null.
unsafe fn transmit(
    session: &Session,
    fd: c_int,
    pieces: &[iovec],
    flags: c_int,
) -> Result<i64, Errno> {
    let mut data = Vec::new();
    for piece in pieces {
        // SAFETY: the caller guarantees that it is readable.
        data.extend_from_slice(unsafe { bytes_at(piece.iov_base, piece.iov_len) }?);
    }
    session.call(|find| Call::Write(find(fd), data, flags)).map(|answer| answer.value)
}

/// # Safety
/// As for the system's own call; `userdata` is a session.
unsafe fn receive_one(
    userdata: *mut c_void,
    fd: c_int,
    at: *mut c_void,
    bytes: size_t,
    flags: c_int,
) -> ssize_t {
    let piece = iovec { iov_base: at, iov_len: bytes };
    // SAFETY: packetdrill passes the session that it got, and a place of that length.
    unsafe {
        guarded(userdata, |session| {
            receive(session, fd, &[piece], flags).map(|answer| answer.value)
        })
    }
}

/// # Safety
/// As for the system's own call; `userdata` is a session.
unsafe fn transmit_one(
    userdata: *mut c_void,
    fd: c_int,
    at: *const c_void,
    bytes: size_t,
    flags: c_int,
) -> ssize_t {
    let piece = iovec { iov_base: at.cast_mut(), iov_len: bytes };
    // SAFETY: packetdrill passes the session that it got, and as many bytes; they are only read.
    unsafe { guarded(userdata, |session| transmit(session, fd, &[piece], flags)) }
}

pub(super) unsafe extern "C" fn read(
    userdata: *mut c_void,
    fd: c_int,
    at: *mut c_void,
    bytes: size_t,
) -> ssize_t {
    // SAFETY: the arguments are passed on unchanged.
    unsafe { receive_one(userdata, fd, at, bytes, 0) }
}

pub(super) unsafe extern "C" fn recv(
    userdata: *mut c_void,
    fd: c_int,
    at: *mut c_void,
    bytes: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the arguments are passed on unchanged.
    unsafe { receive_one(userdata, fd, at, bytes, flags) }
}

/// Reads without an address: the peer of a connection is known.
pub(super) unsafe extern "C" fn recvfrom(
    userdata: *mut c_void,
    fd: c_int,
    at: *mut c_void,
    bytes: size_t,
    flags: c_int,
    _from: *mut sockaddr,
    from_bytes: *mut socklen_t,
) -> ssize_t {
    if !from_bytes.is_null() {
        // SAFETY: not null, so it is a writable length.
        unsafe { from_bytes.write(0) };
    }
    // SAFETY: the arguments are passed on unchanged.
    unsafe { receive_one(userdata, fd, at, bytes, flags) }
}

pub(super) unsafe extern "C" fn readv(
    userdata: *mut c_void,
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
) -> ssize_t {
    // SAFETY: packetdrill passes the session that it got, and as many pieces.
    unsafe {
        guarded(userdata, |session| {
            let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
            receive(session, fd, pieces_at(pieces, count)?, 0).map(|answer| answer.value)
        })
    }
}

pub(super) unsafe extern "C" fn recvmsg(
    userdata: *mut c_void,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: packetdrill passes the session that it got, and a message or null.
    unsafe {
        guarded(userdata, |session| {
            let message = message.as_mut().ok_or(Errno::EFAULT)?;
            let pieces = pieces_at(message.msg_iov, message.msg_iovlen)?;
            let answer = receive(session, fd, pieces, flags)?;
            (message.msg_namelen, message.msg_flags) = (0, 0);
            put_rest(message, answer.rest)?;
            Ok(answer.value)
        })
    }
}

pub(super) unsafe extern "C" fn write(
    userdata: *mut c_void,
    fd: c_int,
    at: *const c_void,
    bytes: size_t,
) -> ssize_t {
    // SAFETY: the arguments are passed on unchanged.
    unsafe { transmit_one(userdata, fd, at, bytes, 0) }
}

pub(super) unsafe extern "C" fn send(
    userdata: *mut c_void,
    fd: c_int,
    at: *const c_void,
    bytes: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the arguments are passed on unchanged.
    unsafe { transmit_one(userdata, fd, at, bytes, flags) }
}

/// Writes, and ignores the address: the peer of a connection is known.
pub(super) unsafe extern "C" fn sendto(
    userdata: *mut c_void,
    fd: c_int,
    at: *const c_void,
    bytes: size_t,
    flags: c_int,
    _to: *const sockaddr,
    _to_bytes: socklen_t,
) -> ssize_t {
    // SAFETY: the arguments are passed on unchanged.
    unsafe { transmit_one(userdata, fd, at, bytes, flags) }
}

pub(super) unsafe extern "C" fn writev(
    userdata: *mut c_void,
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
) -> ssize_t {
    // SAFETY: packetdrill passes the session that it got, and as many pieces.
    unsafe {
        guarded(userdata, |session| {
            let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
            transmit(session, fd, pieces_at(pieces, count)?, 0)
        })
    }
}

pub(super) unsafe extern "C" fn sendmsg(
    userdata: *mut c_void,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: packetdrill passes the session that it got, and a message or null.
    unsafe {
        guarded(userdata, |session| {
            let message = message.as_ref().ok_or(Errno::EFAULT)?;
            let pieces = pieces_at(message.msg_iov, message.msg_iovlen)?;
            transmit(session, fd, pieces, flags)
        })
    }
}

/// Linux's UIO_MAXIOV.
const MOST_PIECES: usize = 1024;
