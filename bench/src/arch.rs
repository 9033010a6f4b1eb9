//! Throwing cache lines out, so that a packet is as cold as one a device has just written.
//!
//! It is separate because the instruction takes an address, and is the only unsafe code of this
//! package beside the rivals' C interface. On processors without such an instruction nothing is
//! flushed and [`CAN_FLUSH`] says so; cold rows are then not measured.
#![allow(unsafe_code, reason = "a flush instruction takes an address")]

/// Bytes that leave the cache together.
pub(crate) const LINE_BYTES: usize = 64;

/// Whether [`flush`] does anything here.
pub(crate) const CAN_FLUSH: bool = cfg!(target_arch = "x86_64");

/// Throws every cache line of `bytes` out of all caches. Costs about 100 ns a line.
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

/// Nothing to flush with.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn flush(_bytes: &[u8]) {}

/// Waits until everything flushed has left.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: MFENCE is part of SSE2, which every x86-64 processor has.
    unsafe {
        std::arch::x86_64::_mm_mfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
