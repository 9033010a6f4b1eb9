//! epoll_create, epoll_ctl, epoll_wait.

use std::ffi::{c_int, c_void};

use libc::epoll_event;

use super::connections::hold;
use super::guarded;
use crate::abi::{EPOLL_CTL_DEL, Errno};
use crate::host::Call;

pub(super) unsafe extern "C" fn epoll_create(userdata: *mut c_void, _size: c_int) -> c_int {
    // SAFETY: packetdrill passes the session that it got.
    unsafe {
        guarded(userdata, |session| {
            let made = session.call(|_| Call::EpollCreate)?;
            hold(session, made.value)
        })
    }
}

pub(super) unsafe extern "C" fn epoll_ctl(
    userdata: *mut c_void,
    epoll: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got, and an event or null.
    unsafe {
        guarded(userdata, |session| {
            let (events, data) = match event.is_null() {
                // SAFETY: not null, so it points to an event, which may be unaligned because C
                // packs it.
                false => {
                    let event = event.read_unaligned();
                    (event.events, event.u64)
                }
                true if operation == EPOLL_CTL_DEL => (0, 0),
                true => return Err(Errno::EFAULT),
            };
            session
                .call(|find| Call::EpollControl(find(epoll), operation, find(fd), events, data))
                .map(|answer| answer.value)
        })
    }
}

pub(super) unsafe extern "C" fn epoll_wait(
    userdata: *mut c_void,
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got, and room for as many events.
    unsafe {
        guarded(userdata, |session| {
            let most = usize::try_from(most).map_err(|_| Errno::EINVAL)?;
            if events.is_null() {
                return Err(Errno::EFAULT);
            }
            let answer = session.call(|find| Call::EpollWait(find(epoll), most, timeout_ms))?;
            for (at, (found, data)) in answer.events.iter().enumerate() {
                let event = epoll_event { events: *found, u64: *data };
                // SAFETY: there are at most `most` events, and the caller guarantees room for
                // those.
                events.add(at).write_unaligned(event);
            }
            Ok(answer.value)
        })
    }
}
