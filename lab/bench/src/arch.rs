//! Flushes cache lines, so that a packet is as cold as one that a device has just written.
//!
//! Separate because the flush instruction takes an address: this is the only unsafe code of the
//! package besides the C interface of the rivals. On processors without such an instruction nothing
//! is flushed, [`CAN_FLUSH`] is false, and cold rows are not measured.
#![allow(unsafe_code, reason = "a flush instruction takes an address")]

/// Size of a cache line.
pub(crate) const LINE_BYTES: usize = 64;

/// `true` if [`flush`] has an effect on this processor.
pub(crate) const CAN_FLUSH: bool = cfg!(target_arch = "x86_64");

/// Flushes every cache line of `bytes` from all caches. Takes about 100 ns per line.
#[cfg(target_arch = "x86_64")]
pub(crate) fn flush(bytes: &[u8]) {
    use std::arch::x86_64::_mm_clflush;
    for line in bytes.chunks(LINE_BYTES) {
        // SAFETY: CLFLUSH is part of SSE2, which every x86-64 processor has; the address lies
        // inside a live slice, and flushing changes no value.
        unsafe { _mm_clflush(line.as_ptr()) };
    }
    if let Some(last) = bytes.last() {
        // SAFETY: as above; a slice that begins inside a line ends in one line more.
        unsafe { _mm_clflush(std::ptr::from_ref(last)) };
    }
}

/// Does nothing, because this processor has no flush instruction.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn flush(_bytes: &[u8]) {}

/// Waits until all flushes are complete.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: MFENCE is part of SSE2, which every x86-64 processor has.
    unsafe {
        std::arch::x86_64::_mm_mfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
