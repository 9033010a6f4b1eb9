//! Deliveries that the program takes: one by one, or written to a descriptor.

use std::ffi::{c_int, c_void};
use std::io;

use rxo_frame::Instant;

use super::hand::RxoDelivery;
use super::{RxoEngine, run};
use crate::border::{Failure, RXO_AGAIN, RXO_IO, RXO_OK};

/// Takes the next delivery, in order; false if there is none. What `d` points to is valid until
/// `rxo_release`.
///
/// # Safety
/// `e` is from `rxo_new`; `d` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_next(e: *mut RxoEngine, d: *mut RxoDelivery) -> bool {
    // SAFETY: the caller's promise.
    let hand = unsafe { e.as_mut() }.filter(|e| !e.is_broken).map(|e| &mut e.hand);
    let Some((hand, false)) = hand.map(|hand| (hand, d.is_null())) else { return false };
    let Some(next) = hand.first() else { return false };
    hand.take_first();
    // SAFETY: the caller's promise.
    unsafe { d.write(next) };
    true
}

/// Releases the frames of all deliveries that `rxo_next` has returned: calls `give_back(cookie)` for each.
/// With NULL for `give_back`, use `rxo_delivery.cookies` instead. Call it after every round of
/// `rxo_next`.
///
/// # Safety
/// `e` is from `rxo_new`; `give_back` does not use `e`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_release(
    e: *mut RxoEngine,
    give_back: Option<unsafe extern "C" fn(cookie: *mut c_void)>,
) {
    // SAFETY: the caller's promise.
    let Some(e) = (unsafe { e.as_mut() }) else { return };
    // SAFETY: the caller's promise.
    unsafe { e.hand.release(give_back) };
}

/// Ends a poll, and writes each delivery that is ready to `fd` with its virtio header: one `writev` each, in
/// order. Releases the frames of those that were written, and of all that `rxo_next` has returned before, as
/// `rxo_release` does; with NULL for `give_back`, only RXO_OK tells that all of them are free. Stores the number
/// of written deliveries in `written`, unless it is NULL. RXO_OK if none is left. RXO_AGAIN if `fd` is non-blocking and has
/// no room: wait until it is writable and call again. RXO_IO if `fd` refuses a delivery, or does not take it
/// whole as a TUN or TAP does: `rxo_error` says why. After both, that delivery and those behind it are still
/// ready: call again to write them, or drop them by `rxo_next` and `rxo_release`. Meanwhile frames can be
/// pushed, until RXO_FULL.
///
/// # Safety
/// `e` is from `rxo_new`; `give_back` does not use `e`; `written` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_poll_writev(
    e: *mut RxoEngine,
    fd: c_int,
    now_ns: u64,
    give_back: Option<unsafe extern "C" fn(cookie: *mut c_void)>,
    written: *mut usize,
) -> c_int {
    let mut count = 0;
    let work = |e: &mut RxoEngine| {
        e.end_poll(Instant::from_nanos(now_ns));
        let mut result = Ok(RXO_OK);
        while let Some(next) = e.hand.first() {
            if let Err(failure) = write(fd, &next) {
                result = Err(failure);
                break;
            }
            e.hand.take_first();
            count += 1;
        }
        // SAFETY: the caller's promise.
        unsafe { e.hand.release(give_back) };
        result
    };
    // SAFETY: the caller's promise.
    let code = unsafe { run(e, work) };
    // SAFETY: the caller's promise.
    if let Some(written) = unsafe { written.as_mut() } {
        *written = count;
    }
    code
}

/// Writes a delivery to `fd`, again if a signal interrupts it.
fn write(fd: c_int, delivery: &RxoDelivery) -> Result<(), Failure> {
    let RxoDelivery { iov, niov, bytes, .. } = *delivery;
    // SAFETY: the first piece is the virtio header of a delivery that is not released.
    let bytes = bytes + unsafe { &*iov }.iov_len;
    loop {
        // SAFETY: the pieces are those of a delivery that is not released, so their memory can be read.
        let wrote = unsafe { libc::writev(fd, iov, niov as c_int) };
        let Ok(wrote) = usize::try_from(wrote) else {
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => continue,
                io::ErrorKind::WouldBlock => {
                    let text =
                        format!("descriptor {fd} has no room now: wait until it is writable");
                    return Err(Failure(RXO_AGAIN, text));
                }
                _ => {
                    let text =
                        format!("descriptor {fd} refuses a packet of {bytes} bytes: {error}");
                    return Err(Failure(RXO_IO, text));
                }
            }
        };
        if wrote == bytes {
            return Ok(());
        }
        let text = format!(
            "descriptor {fd} took {wrote} of {bytes} bytes: give one that takes packets whole"
        );
        return Err(Failure(RXO_IO, text));
    }
}
