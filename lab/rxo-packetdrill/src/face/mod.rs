//! The host as a shared object for packetdrill.
//!
//! packetdrill loads it, calls [`packetdrill_interface_init`], and gets a table of functions:
//! system calls, a packet in, the next packet out, and the clock. Separate because only here does
//! memory come from a C program. `table.rs` lays the table out as packetdrill does. The functions
//! in the other files only turn C's arguments into values, and an [`Errno`] into `errno`. The work
//! is done in `session.rs`, which is safe code.
//!
//! Contract: no panic crosses into C; [`guarded`] turns it into `EIO`. Pointers are trusted as far
//! as system calls trust them; null gives `EFAULT`.

#![allow(unsafe_code, reason = "the border to a program in C")]

mod address;
mod connections;
mod control;
mod epoll;
mod network;
mod preloaded;
mod session;
mod sysctls;
mod table;
mod text;

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use self::session::Session;
use self::table::Interface;
use crate::abi::Errno;

/// Fills `interface` with this host's functions. `flags` is the value of `--so_flags`, or null.
/// Invalid flags are reported on standard error, and then every call fails with `EINVAL`, because
/// there is no other way to refuse.
///
/// # Safety
/// `interface` points to the writable table that packetdrill declares; `flags` is null or a
/// zero-terminated text.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn packetdrill_interface_init(
    flags: *const c_char,
    interface: *mut Interface,
) {
    if interface.is_null() {
        return;
    }
    let flags = if flags.is_null() {
        String::new()
    } else {
        // SAFETY: not null, and the caller guarantees that it is zero-terminated.
        unsafe { CStr::from_ptr(flags) }.to_string_lossy().into_owned()
    };
    let made = catch_unwind(|| Session::of_flags(&flags));
    let session = made.unwrap_or_else(|_| Session::refusing());
    let userdata = Box::into_raw(Box::new(session)).cast::<c_void>();
    preloaded::add(userdata);
    // SAFETY: the caller guarantees that it is writable; no value in it needs to be dropped.
    unsafe { interface.write(Interface::new(userdata)) };
}

/// Drops the session. The table must not be used afterwards.
unsafe extern "C" fn free(userdata: *mut c_void) {
    if !userdata.is_null() {
        preloaded::remove(userdata);
        // SAFETY: it came from `Box::into_raw` above, and packetdrill frees it once.
        let session = unsafe { Box::from_raw(userdata.cast::<Session>()) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(session)));
    }
}

/// Runs `act` with the session behind `userdata`, and returns its value as the call's type. An error
/// becomes -1 and `errno`; a panic becomes an error.
///
/// # Safety
/// `userdata` comes from [`packetdrill_interface_init`] and has not been freed.
unsafe fn guarded<T: From<i8> + TryFrom<i64>>(
    userdata: *mut c_void,
    act: impl FnOnce(&Session) -> Result<i64, Errno>,
) -> T {
    // SAFETY: the caller guarantees that it is a session, which is only shared by reference.
    let session = unsafe { userdata.cast::<Session>().as_ref() };
    let Some(session) = session else { return fail(Errno::EFAULT) };
    match catch_unwind(AssertUnwindSafe(|| act(session))) {
        Ok(Ok(value)) => T::try_from(value).unwrap_or_else(|_| fail(Errno::EIO)),
        Ok(Err(errno)) => fail(errno),
        Err(_) => fail(Errno::EIO),
    }
}

fn fail<T: From<i8>>(Errno(number): Errno) -> T {
    // SAFETY: the C library gives each thread its own variable, valid while the thread lives.
    unsafe { *libc::__errno_location() = number };
    T::from(-1)
}

/// The bytes at `at`. A length of zero allows a null pointer.
///
/// # Safety
/// `at` is null or points to `bytes` bytes that are readable for `'a`.
unsafe fn bytes_at<'a>(at: *const c_void, bytes: usize) -> Result<&'a [u8], Errno> {
    if bytes == 0 {
        return Ok(&[]);
    }
    if at.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: not null; the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts(at.cast(), bytes) })
}

/// The writable bytes at `at`.
///
/// # Safety
/// `at` is null or points to `bytes` bytes that are writable, and not used otherwise, for `'a`.
unsafe fn place_at<'a>(at: *mut c_void, bytes: usize) -> Result<&'a mut [u8], Errno> {
    if bytes == 0 {
        return Ok(&mut []);
    }
    if at.is_null() {
        return Err(Errno::EFAULT);
    }
    // SAFETY: not null; the caller guarantees the rest.
    Ok(unsafe { std::slice::from_raw_parts_mut(at.cast(), bytes) })
}

#[cfg(test)]
mod tests;
