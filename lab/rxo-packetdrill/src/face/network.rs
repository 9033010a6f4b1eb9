//! Packets in and out, and the clock.

use std::ffi::{c_int, c_longlong, c_void};

use libc::{size_t, timeval, timezone, useconds_t};
use rxo_frame::Duration;

use super::{bytes_at, guarded, place_at};
use crate::abi::Errno;

pub(super) unsafe extern "C" fn netdev_send(
    userdata: *mut c_void,
    at: *const c_void,
    bytes: size_t,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got, and a packet of that length.
    unsafe {
        guarded(userdata, |session| {
            session.send(bytes_at(at, bytes)?);
            Ok(0)
        })
    }
}

/// Returns the next packet. A length of 0 means that no packet will ever leave.
pub(super) unsafe extern "C" fn netdev_receive(
    userdata: *mut c_void,
    at: *mut c_void,
    bytes: *mut size_t,
    time_us: *mut c_longlong,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got, a place of that length, and one for a time.
    unsafe {
        guarded(userdata, |session| {
            let bytes = bytes.as_mut().ok_or(Errno::EFAULT)?;
            let time_us = time_us.as_mut().ok_or(Errno::EFAULT)?;
            let packet = session.receive();
            let text = packet.as_ref().map_or(&[][..], |packet| packet.bytes.as_slice());
            let part = text.len().min(*bytes);
            place_at(at, part)?.copy_from_slice(&text[..part]);
            *bytes = part;
            let when = packet.as_ref().map_or_else(|| session.time(), |packet| packet.at);
            *time_us = (when.as_nanos() / 1000) as c_longlong;
            Ok(0)
        })
    }
}

pub(super) unsafe extern "C" fn usleep(userdata: *mut c_void, time_us: useconds_t) -> c_int {
    // SAFETY: packetdrill passes the session that it got.
    unsafe {
        guarded(userdata, |session| {
            session.sleep(Duration::from_micros(time_us.into()));
            Ok(0)
        })
    }
}

/// Returns the session's time. The time zone is ignored.
pub(super) unsafe extern "C" fn gettimeofday(
    userdata: *mut c_void,
    at: *mut timeval,
    _zone: *mut timezone,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got, and a place for the time.
    unsafe {
        guarded(userdata, |session| {
            let place = at.as_mut().ok_or(Errno::EFAULT)?;
            let micros = session.time().as_nanos() / 1000;
            place.tv_sec = (micros / 1_000_000) as libc::time_t;
            place.tv_usec = (micros % 1_000_000) as libc::suseconds_t;
            Ok(0)
        })
    }
}
