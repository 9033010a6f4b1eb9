//! socket, bind, listen, accept, connect, close, shutdown.
//!
//! packetdrill closes what a script leaves open with the system's own call, so each descriptor must
//! be a real one of the process. An open `/dev/null` holds its number.

use std::ffi::{c_int, c_void};

use libc::{sockaddr, socklen_t};

use super::session::Session;
use super::{address, guarded};
use crate::abi::Errno;
use crate::host::Call;

/// Reserves a descriptor of the process for `fd` of the host.
pub(super) fn hold(session: &Session, fd: i64) -> Result<i64, Errno> {
    // SAFETY: the path is a text with a zero at its end.
    let held = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if held < 0 {
        return Err(Errno::EIO);
    }
    session.name(held, fd as c_int);
    Ok(held.into())
}

pub(super) unsafe extern "C" fn socket(
    userdata: *mut c_void,
    domain: c_int,
    kind: c_int,
    protocol: c_int,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got.
    unsafe {
        guarded(userdata, |session| {
            let made = session.call(|_| Call::Socket { domain, kind, protocol })?;
            hold(session, made.value)
        })
    }
}

pub(super) unsafe extern "C" fn bind(
    userdata: *mut c_void,
    fd: c_int,
    at: *const sockaddr,
    bytes: socklen_t,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got, and an address of that length.
    unsafe {
        guarded(userdata, |session| {
            let to = address::read(at, bytes)?;
            session.call(|find| Call::Bind(find(fd), to)).map(|answer| answer.value)
        })
    }
}

pub(super) unsafe extern "C" fn listen(userdata: *mut c_void, fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: packetdrill passes the session that it got.
    unsafe {
        guarded(userdata, |session| {
            session.call(|find| Call::Listen(find(fd), backlog)).map(|answer| answer.value)
        })
    }
}

pub(super) unsafe extern "C" fn accept(
    userdata: *mut c_void,
    fd: c_int,
    at: *mut sockaddr,
    bytes: *mut socklen_t,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got, and a place of that length or none.
    unsafe {
        guarded(userdata, |session| {
            let accepted = session.call(|find| Call::Accept(find(fd)))?;
            if let Some(peer) = accepted.peer {
                address::write(peer, session.is_v6(fd), at, bytes)?;
            }
            hold(session, accepted.value)
        })
    }
}

pub(super) unsafe extern "C" fn connect(
    userdata: *mut c_void,
    fd: c_int,
    at: *const sockaddr,
    bytes: socklen_t,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got, and an address of that length.
    unsafe {
        guarded(userdata, |session| {
            let to = address::read(at, bytes)?;
            session.call(|find| Call::Connect(find(fd), to)).map(|answer| answer.value)
        })
    }
}

pub(super) unsafe extern "C" fn close(userdata: *mut c_void, fd: c_int) -> c_int {
    // SAFETY: packetdrill passes the session that it got.
    unsafe {
        guarded(userdata, |session| {
            let closed = session.call(|find| Call::Close(find(fd)))?;
            session.forget(fd);
            // SAFETY: `hold` opened it, and nothing else in this crate uses it.
            libc::close(fd);
            Ok(closed.value)
        })
    }
}

pub(super) unsafe extern "C" fn shutdown(userdata: *mut c_void, fd: c_int, how: c_int) -> c_int {
    // SAFETY: packetdrill passes the session that it got.
    unsafe {
        guarded(userdata, |session| {
            session.call(|find| Call::Shutdown(find(fd), how)).map(|answer| answer.value)
        })
    }
}
