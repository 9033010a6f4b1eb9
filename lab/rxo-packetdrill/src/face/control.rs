//! fcntl, ioctl, options and poll, and what this host lacks: pipes, splice.

use std::ffi::{c_int, c_uint, c_ulong, c_void};

use libc::{loff_t, nfds_t, pollfd, size_t, socklen_t};

use super::{bytes_at, fail, guarded, place_at};
use crate::abi::{Errno, SO_LINGER, SOL_SOCKET, TCP_CONGESTION};
use crate::host::{Call, OptionValue};

pub(super) unsafe extern "C" fn fcntl(
    userdata: *mut c_void,
    fd: c_int,
    command: c_int,
    argument: c_int,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got.
    unsafe {
        guarded(userdata, |session| {
            session.call(|find| Call::Fcntl(find(fd), command, argument)).map(|answer| answer.value)
        })
    }
}

pub(super) unsafe extern "C" fn ioctl(
    userdata: *mut c_void,
    fd: c_int,
    request: c_ulong,
    at: *mut c_int,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got, and a number's place for what asks for one.
    unsafe {
        guarded(userdata, |session| {
            let answer = session.call(|find| Call::Ioctl(find(fd), request))?;
            if let Some(OptionValue::Number(number)) = answer.option {
                let place = place_at(at.cast(), size_of::<c_int>())?;
                place.copy_from_slice(&number.to_ne_bytes());
            }
            Ok(answer.value)
        })
    }
}

pub(super) unsafe extern "C" fn getsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    name: c_int,
    at: *mut c_void,
    bytes: *mut socklen_t,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got, and a place of that length.
    unsafe {
        guarded(userdata, |session| {
            let room = bytes.as_mut().ok_or(Errno::EFAULT)?;
            let answer = session.call(|find| Call::GetOption(find(fd), level, name))?;
            let image = answer.option.map_or_else(Vec::new, image);
            let part = image.len().min(*room as usize);
            place_at(at, part)?.copy_from_slice(&image[..part]);
            *room = part as socklen_t;
            Ok(0)
        })
    }
}

pub(super) unsafe extern "C" fn setsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    name: c_int,
    at: *const c_void,
    bytes: socklen_t,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got, and an option of that length.
    unsafe {
        guarded(userdata, |session| {
            let value = option((level, name), bytes_at(at, bytes as usize)?)?;
            let call = session.call(|find| Call::SetOption(find(fd), level, name, value));
            call.map(|answer| answer.value)
        })
    }
}

/// Decodes an option's bytes.
fn option(which: (c_int, c_int), bytes: &[u8]) -> Result<OptionValue, Errno> {
    let number = |at: usize| {
        let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| c_int::from_ne_bytes(*bytes)).ok_or(Errno::EINVAL)
    };
    match which {
        (SOL_SOCKET, SO_LINGER) => Ok(OptionValue::Linger(number(0)?, number(4)?)),
        (libc::IPPROTO_TCP, TCP_CONGESTION) => {
            let text = String::from_utf8_lossy(bytes);
            Ok(OptionValue::Name(text.trim_end_matches('\0').to_owned()))
        }
        _ => number(0).map(OptionValue::Number),
    }
}

fn image(value: OptionValue) -> Vec<u8> {
    match value {
        OptionValue::Number(number) => number.to_ne_bytes().to_vec(),
        OptionValue::Linger(is_on, seconds) => {
            [is_on.to_ne_bytes(), seconds.to_ne_bytes()].concat()
        }
        OptionValue::Name(name) => name.into_bytes(),
        OptionValue::Info(info) => info.bytes(),
        OptionValue::Bytes(bytes) => bytes,
    }
}

pub(super) unsafe extern "C" fn poll(
    userdata: *mut c_void,
    descriptors: *mut pollfd,
    count: nfds_t,
    timeout_ms: c_int,
) -> c_int {
    // SAFETY: packetdrill passes the session that it got, and as many descriptors.
    unsafe {
        guarded(userdata, |session| {
            let list: &mut [pollfd] = match count {
                0 => &mut [],
                _ if descriptors.is_null() || count > MOST_DESCRIPTORS => {
                    return Err(Errno::EFAULT);
                }
                // SAFETY: not null, and the caller guarantees `count` descriptors.
                _ => std::slice::from_raw_parts_mut(descriptors, count as usize),
            };
            let wanted: Vec<_> = list.iter().map(|entry| (entry.fd, entry.events)).collect();
            let answer = session.call(|find| {
                let found = wanted.iter().map(|(fd, events)| (find(*fd), *events));
                Call::Poll(found.collect(), timeout_ms)
            })?;
            for (entry, ready) in list.iter_mut().zip(&answer.ready) {
                entry.revents = *ready;
            }
            Ok(answer.value)
        })
    }
}

pub(super) unsafe extern "C" fn pipe(_: *mut c_void, _: *mut c_int) -> c_int {
    fail(Errno::ENOSYS)
}

pub(super) unsafe extern "C" fn splice(
    _: *mut c_void,
    _: c_int,
    _: *mut loff_t,
    _: c_int,
    _: *mut loff_t,
    _: size_t,
    _: c_uint,
) -> c_int {
    fail(Errno::ENOSYS)
}

/// More descriptors than any process may have open by default.
const MOST_DESCRIPTORS: nfds_t = 1024;
