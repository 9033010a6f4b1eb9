//! Prefetches cache lines.
//!
//! A prefetch is only a hint: it changes no value and cannot fault. On processors for which this module has no
//! prefetch instruction, the functions do nothing.
#![allow(unsafe_code, reason = "a prefetch instruction takes an address")]

/// The size of a cache line on the processors for which this is tuned, in bytes.
pub const CACHE_LINE_BYTES: usize = 64;

/// Prefetches the cache line that contains `bytes[offset]`, for reading.
///
/// An offset outside `bytes` is allowed but useless. Costs one instruction.
#[inline]
pub fn prefetch(bytes: &[u8], offset: usize) {
    line(bytes.as_ptr().wrapping_add(offset));
}

/// Prefetches every cache line of `bytes`. Costs one instruction per line.
#[inline]
pub fn prefetch_all(bytes: &[u8]) {
    let mut offset = 0;
    while offset < bytes.len() {
        prefetch(bytes, offset);
        offset += CACHE_LINE_BYTES;
    }
    if let Some(last) = bytes.len().checked_sub(1) {
        // A slice that begins inside a cache line may end one line later than its length suggests.
        prefetch(bytes, last);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn line(address: *const u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: PREFETCHT0 is part of SSE, which every x86-64 processor has; it reads no value and
    // raises no fault whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline]
fn line(address: *const u8) {
    // SAFETY: PRFM is in the base instruction set; it reads no value, changes no register or flag
    // and raises no fault whatever the address.
    unsafe {
        core::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    };
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[inline]
const fn line(_address: *const u8) {}

#[cfg(test)]
mod tests {
    use super::{prefetch, prefetch_all};

    #[test]
    fn any_offset_is_harmless() {
        let bytes = [1, 2, 3];
        for offset in [0, 2, 3, 4096, usize::MAX] {
            prefetch(&bytes, offset);
        }
        prefetch_all(&[]);
        prefetch_all(&bytes);
        assert_eq!(bytes, [1, 2, 3]);
    }
}
