//! Border to C: error codes, and the checks that all functions of the library share.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use rxo_coalesce::Policy;

/// The call succeeded.
pub const RXO_OK: c_int = 0;
/// An argument is invalid: null, a length out of range, or a string that cannot be parsed.
pub const RXO_INVALID: c_int = -1;
/// The engine cannot take another frame: end the poll, take deliveries and release them first. Each released
/// frame makes space for one.
pub const RXO_FULL: c_int = -2;
/// The frame cannot be segmented. Send it as it is, or drop it.
pub const RXO_UNSUPPORTED: c_int = -3;
/// The output buffer is too small. Nothing was written; call again with a larger one.
pub const RXO_ROOM: c_int = -4;
/// A file cannot be read or written.
pub const RXO_IO: c_int = -5;
/// An internal error of the library. The object returns only errors from now on; free it.
pub const RXO_BROKEN: c_int = -6;
/// The descriptor takes nothing now: wait until it is writable, then make the same call again.
pub const RXO_AGAIN: c_int = -7;

thread_local! {
    /// The last two messages, the newer one first.
    static ERRORS: RefCell<[CString; 2]> = RefCell::default();
}

/// The error message of the last call on this thread that failed: one line for a person; empty if none has
/// failed. The text stays as it is while one more call fails on this thread, and until a second one does.
#[unsafe(no_mangle)]
pub extern "C" fn rxo_error() -> *const c_char {
    ERRORS.with(|errors| errors.try_borrow().map_or(c"".as_ptr(), |texts| texts[0].as_ptr()))
}

/// The version of the library, such as "0.1.0". A static string.
#[unsafe(no_mangle)]
pub extern "C" fn rxo_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Runs `work` and returns its result. Stores the message of a failure for `rxo_error`, and turns a panic into
/// `RXO_BROKEN`.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, c_int> {
    let result = catch_unwind(AssertUnwindSafe(work));
    let failure = match result {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(failure)) => failure,
        Err(_) => Failure(RXO_BROKEN, "a mistake in librxo; please report it".to_owned()),
    };
    let text = CString::new(failure.1.replace('\0', " ")).unwrap_or_default();
    ERRORS.with_borrow_mut(|errors| {
        errors.swap(0, 1);
        errors[0] = text;
    });
    Err(failure.0)
}

/// A failed call: the error code and the message.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) c_int, pub(crate) String);

impl Failure {
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self(RXO_INVALID, text.into())
    }
}

/// Runs `work` and returns a pointer to its new object; null on failure.
pub(crate) fn boxed<T>(work: impl FnOnce() -> Result<T, Failure>) -> *mut T {
    guarded(|| work().map(Box::new)).map_or(ptr::null_mut(), Box::into_raw)
}

/// Frees an object that `boxed` created; does nothing if `object` is null.
///
/// # Safety
/// `object` is null, or was returned by `boxed` and not freed yet.
pub(crate) unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller's promise.
        let object = unsafe { Box::from_raw(object) };
        // A panic of a destructor cannot be reported.
        let _ = guarded(|| {
            drop(object);
            Ok(())
        });
    }
}

/// Returns the object that a pointer from C points to; an error if the pointer is null.
///
/// # Safety
/// `object` is null or points to a valid `T` that nothing else uses for `'a`.
pub(crate) unsafe fn object<'a, T>(object: *mut T) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { object.as_mut() }.ok_or_else(|| Failure::invalid("null where an object is expected"))
}

/// Returns the slice that a pointer and a length from C describe; an error if the pointer is null or the length exceeds
/// [`MOST_BYTES`].
///
/// # Safety
/// If `bytes` is not null, `len` bytes are readable there for `'a`.
pub(crate) unsafe fn bytes<'a>(bytes: *const u8, len: usize) -> Result<&'a [u8], Failure> {
    if bytes.is_null() || len > MOST_BYTES {
        return Err(Failure::invalid(format!("{len} bytes: give memory of up to {MOST_BYTES}")));
    }
    // SAFETY: the caller's promise; the length is below that of any object.
    Ok(unsafe { std::slice::from_raw_parts(bytes, len) })
}

/// Maximum length of an input buffer, in bytes; far more than the length of any packet.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// Returns a zero-terminated string from C as a `str`; an error if it is null or not UTF-8.
///
/// # Safety
/// `text` is null or zero-terminated.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::invalid("null where a text is expected"));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::invalid("a text is not UTF-8"))
}

/// Parses a policy: the name of a profile, followed by settings `key=value`, separated by spaces.
pub(crate) fn policy(words: &str) -> Result<Policy, Failure> {
    let mut words = words.split_whitespace();
    let name = words.next().unwrap_or_default();
    let profile = Policy::by_name(name).map_err(|error| Failure::invalid(error.to_string()))?;
    let mut policy = profile.live();
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| {
            Failure::invalid(format!("{word}: write key=value, such as max_segments=16"))
        })?;
        policy.set(key, value).map_err(|error| Failure::invalid(error.to_string()))?;
    }
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_code_with_a_text() {
        std::panic::set_hook(Box::new(|_| ()));
        let result = guarded::<()>(|| panic!("inside"));
        drop(std::panic::take_hook());
        assert_eq!(result, Err(RXO_BROKEN));
        // SAFETY: `rxo_error` returns a zero-terminated text.
        let text = unsafe { CStr::from_ptr(rxo_error()) };
        assert!(text.to_str().unwrap().starts_with("a mistake in librxo"));
    }

    #[test]
    fn a_policy_is_a_profile_and_settings() {
        let policy = policy("linux-gro max_segments=16  flows=8").unwrap();
        assert_eq!((policy.max_segments, policy.flows), (16, 8));
        for words in ["", "lro", "linux-gro flows", "linux-gro flows=0", "linux-gro speed=1"] {
            assert_eq!(super::policy(words).unwrap_err().0, RXO_INVALID, "{words}");
        }
    }
}
