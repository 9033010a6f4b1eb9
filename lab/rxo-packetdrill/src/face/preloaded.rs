//! Replaces getsockopt(2) for the whole process, because packetdrill does not use the table for all
//! options.
//!
//! The code of a script (`%{ … }%`) reads TCP_INFO, for which packetdrill calls the C library. With
//! the shared object preloaded (`LD_PRELOAD`), as `cargo xtask packetdrill` does, that call arrives
//! here. If the descriptor belongs to a session, the session answers; otherwise the system does.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use libc::socklen_t;

use super::control;
use super::session::Session;

/// The addresses of all sessions. They are only compared, or dereferenced while the lock is held.
static SESSIONS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

pub(super) fn add(userdata: *mut c_void) {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner).push(userdata as usize);
}

pub(super) fn remove(userdata: *mut c_void) {
    let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    sessions.retain(|session| *session != userdata as usize);
}

/// Finds the session that owns `fd`.
fn owner(fd: c_int) -> Option<*mut c_void> {
    let sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let has = |session: &&usize| {
        // SAFETY: a session is removed under the lock before it is dropped.
        let session = unsafe { (**session as *const Session).as_ref() };
        session.is_some_and(|session| session.has(fd))
    };
    sessions.iter().find(has).map(|session| *session as *mut c_void)
}

/// # Safety
/// As for the system's own call.
#[unsafe(no_mangle)]
unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    at: *mut c_void,
    bytes: *mut socklen_t,
) -> c_int {
    match owner(fd) {
        // SAFETY: the arguments are passed on unchanged; packetdrill frees the session at its end.
        Some(userdata) => unsafe { control::getsockopt(userdata, fd, level, name, at, bytes) },
        // SAFETY: the arguments are passed on unchanged.
        None => unsafe { libc::syscall(libc::SYS_getsockopt, fd, level, name, at, bytes) as c_int },
    }
}
