//! Raw system calls, as a compromised process makes them: by number, without a library that refuses first.
#![allow(
    unsafe_code,
    reason = "system calls by number, with pointers to what lives through the call"
)]

use std::io;

/// Makes the system call `number`. A negative result becomes an error.
pub(crate) fn call(number: libc::c_long, arguments: &[usize]) -> io::Result<i64> {
    let mut all = [0_usize; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d, e, f] = all;
    // SAFETY: the tests pass numbers, and pointers to what lives until the call returns; the kernel checks both.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Returns the address of `value`, as an argument.
pub(crate) fn at<T: ?Sized>(value: &T) -> usize {
    std::ptr::from_ref(value).cast::<u8>() as usize
}
