//! Everything that reads and writes: read, recv, recvfrom, recvmsg, readv, and their counterparts.

use std::ffi::{c_int, c_void};

use libc::{cmsghdr, iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use super::session::Session;
use super::{bytes_at, guarded, place_at};
use crate::abi::{Errno, MSG_PEEK, TCP_INQ};
use crate::host::{Answer, Call};

/// The pieces of a scattered buffer.
///
/// # Safety
/// `pieces` is null, or `count` of them stand there for as long as `'a`.
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
    // SAFETY: not null; the caller says the rest.
    Ok(unsafe { std::slice::from_raw_parts(pieces, count) })
}

/// Reads into `pieces`, one after the other.
///
/// # Safety
/// Each piece may be written, or is null.
unsafe fn receive(
    session: &Session,
    fd: c_int,
    pieces: &[iovec],
    flags: c_int,
) -> Result<Answer, Errno> {
    let bytes = pieces.iter().map(|piece| piece.iov_len).sum();
    let is_nowhere = |piece: &iovec| piece.iov_base.is_null() && piece.iov_len > 0;
    if pieces.iter().any(is_nowhere) {
        // What cannot be put anywhere stays to be read.
        let peeked = session.call(|find| Call::Read(find(fd), bytes, flags | MSG_PEEK))?;
        return if peeked.data.is_empty() { Ok(peeked) } else { Err(Errno::EFAULT) };
    }
    let answer = session.call(|find| Call::Read(find(fd), bytes, flags))?;
    let mut rest = answer.data.as_slice();
    for piece in pieces {
        let (part, next) = rest.split_at(piece.iov_len.min(rest.len()));
        // SAFETY: the caller says that it may be written; `part` is not longer than it.
        unsafe { place_at(piece.iov_base, part.len()) }?.copy_from_slice(part);
        rest = next;
    }
    Ok(answer)
}

/// Says in a control message how much is left to be read, if `rest` is to be said and there is room;
/// then, too, Linux leaves it out.
///
/// # Safety
/// `message.msg_control` is null, or `msg_controllen` bytes may be written there.
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
    // SAFETY: the caller says that so much may be written.
    unsafe { place_at(message.msg_control, space) }?.copy_from_slice(&image);
    message.msg_controllen = space as _;
    Ok(())
}

/// Writes what stands in `pieces`.
///
/// # Safety
/// Each piece may be read, or is null.
unsafe fn transmit(
    session: &Session,
    fd: c_int,
    pieces: &[iovec],
    flags: c_int,
) -> Result<i64, Errno> {
    let mut data = Vec::new();
    for piece in pieces {
        // SAFETY: the caller says that it may be read.
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
    // SAFETY: packetdrill gives back what it was given, and a place of that length.
    let value = unsafe {
        guarded(userdata, |session| {
            receive(session, fd, &[piece], flags).map(|answer| answer.value)
        })
    };
    value as ssize_t
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
    // SAFETY: packetdrill gives back what it was given, and as many bytes; they are only read.
    let value = unsafe { guarded(userdata, |session| transmit(session, fd, &[piece], flags)) };
    value as ssize_t
}

pub(super) unsafe extern "C" fn read(
    userdata: *mut c_void,
    fd: c_int,
    at: *mut c_void,
    bytes: size_t,
) -> ssize_t {
    // SAFETY: the arguments are passed on as they are.
    unsafe { receive_one(userdata, fd, at, bytes, 0) }
}

pub(super) unsafe extern "C" fn recv(
    userdata: *mut c_void,
    fd: c_int,
    at: *mut c_void,
    bytes: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the arguments are passed on as they are.
    unsafe { receive_one(userdata, fd, at, bytes, flags) }
}

/// A connection's peer is known: no address is written.
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
        // SAFETY: not null, so it is a length that may be written.
        unsafe { from_bytes.write(0) };
    }
    // SAFETY: the arguments are passed on as they are.
    unsafe { receive_one(userdata, fd, at, bytes, flags) }
}

pub(super) unsafe extern "C" fn readv(
    userdata: *mut c_void,
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
) -> ssize_t {
    // SAFETY: packetdrill gives back what it was given, and as many pieces.
    let value = unsafe {
        guarded(userdata, |session| {
            let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
            receive(session, fd, pieces_at(pieces, count)?, 0).map(|answer| answer.value)
        })
    };
    value as ssize_t
}

pub(super) unsafe extern "C" fn recvmsg(
    userdata: *mut c_void,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: packetdrill gives back what it was given, and a message or null.
    let value = unsafe {
        guarded(userdata, |session| {
            let message = message.as_mut().ok_or(Errno::EFAULT)?;
            let pieces = pieces_at(message.msg_iov, message.msg_iovlen)?;
            let answer = receive(session, fd, pieces, flags)?;
            (message.msg_namelen, message.msg_flags) = (0, 0);
            put_rest(message, answer.rest)?;
            Ok(answer.value)
        })
    };
    value as ssize_t
}

pub(super) unsafe extern "C" fn write(
    userdata: *mut c_void,
    fd: c_int,
    at: *const c_void,
    bytes: size_t,
) -> ssize_t {
    // SAFETY: the arguments are passed on as they are.
    unsafe { transmit_one(userdata, fd, at, bytes, 0) }
}

pub(super) unsafe extern "C" fn send(
    userdata: *mut c_void,
    fd: c_int,
    at: *const c_void,
    bytes: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the arguments are passed on as they are.
    unsafe { transmit_one(userdata, fd, at, bytes, flags) }
}

/// A connection's peer is known: the address is not looked at.
pub(super) unsafe extern "C" fn sendto(
    userdata: *mut c_void,
    fd: c_int,
    at: *const c_void,
    bytes: size_t,
    flags: c_int,
    _to: *const sockaddr,
    _to_bytes: socklen_t,
) -> ssize_t {
    // SAFETY: the arguments are passed on as they are.
    unsafe { transmit_one(userdata, fd, at, bytes, flags) }
}

pub(super) unsafe extern "C" fn writev(
    userdata: *mut c_void,
    fd: c_int,
    pieces: *const iovec,
    count: c_int,
) -> ssize_t {
    // SAFETY: packetdrill gives back what it was given, and as many pieces.
    let value = unsafe {
        guarded(userdata, |session| {
            let count = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
            transmit(session, fd, pieces_at(pieces, count)?, 0)
        })
    };
    value as ssize_t
}

pub(super) unsafe extern "C" fn sendmsg(
    userdata: *mut c_void,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: packetdrill gives back what it was given, and a message or null.
    let value = unsafe {
        guarded(userdata, |session| {
            let message = message.as_ref().ok_or(Errno::EFAULT)?;
            let pieces = pieces_at(message.msg_iov, message.msg_iovlen)?;
            transmit(session, fd, pieces, flags)
        })
    };
    value as ssize_t
}

/// As Linux: UIO_MAXIOV.
const MOST_PIECES: usize = 1024;
