//! Heap: measures the memory that this process uses, and returns freed memory to the system.
//!
//! glibc keeps freed memory for later allocations, and returns only memory that is free at the end of a heap.
//! After many connections have closed, little memory is returned: one small block in use near the end of the
//! heap keeps everything before it. Other C libraries return more by themselves, or have no function that
//! returns memory.
#![allow(unsafe_code, reason = "a call of the C library")]

use std::fs;

/// Returns free heap memory to the system, as far as whole pages are free. Takes some milliseconds for 100 MB,
/// during which other threads may wait for allocations. So call this function while there is little traffic. Does
/// nothing if the C library is not glibc.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes a number, and glibc locks each heap while it reads it.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The memory of this process, in bytes. A value is 0 if the system does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The resident set size in bytes, including memory that is freed but not returned.
    pub resident_bytes: u64,
    /// The resident memory, in bytes, that the C library keeps for later allocations. [`trim`] returns this
    /// memory to the system, as far as whole pages are free. An estimate: the resident anonymous memory minus the
    /// heap memory in use, and at most the free heap memory. Stacks and separately mapped blocks make the
    /// estimate too large; allocated memory that was never touched makes it too small. 0 if the C library is not
    /// glibc 2.33 or later.
    pub pooled_bytes: u64,
}

impl Memory {
    /// Reads the memory values from the system and from the C library, which examines each of its heaps;
    /// takes some microseconds.
    #[must_use]
    pub fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let bytes = |name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
            kib.map_or(0, |kib| kib << 10)
        };
        let Heaps { used_bytes, free_bytes } = Heaps::now();
        let pooled_bytes = bytes("RssAnon:").saturating_sub(used_bytes).min(free_bytes);
        Self { resident_bytes: bytes("VmRSS:"), pooled_bytes }
    }
}

/// The used and the free memory in the C library's heaps, in bytes, without separately mapped blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Heaps {
    used_bytes: u64,
    free_bytes: u64,
}

impl Heaps {
    /// Returns the current values, as `mallinfo2` reports them. `mallinfo2` is looked up by name, because it
    /// exists only since glibc 2.33; its predecessor `mallinfo` counts only to 2 GB.
    #[cfg(target_env = "gnu")]
    fn now() -> Self {
        type MallInfo2 = unsafe extern "C" fn() -> libc::mallinfo2;
        // SAFETY: the name ends with a zero byte.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr()) };
        if found.is_null() {
            return Self::default();
        }
        // SAFETY: the C library's function of this name has this type, has no arguments, returns numbers, and
        // locks each heap while it reads it.
        let info = unsafe { std::mem::transmute::<*mut libc::c_void, MallInfo2>(found)() };
        Self { used_bytes: info.uordblks as u64, free_bytes: info.fordblks as u64 }
    }

    #[cfg(not(target_env = "gnu"))]
    fn now() -> Self {
        Self::default()
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    /// Frees most of many blocks. The remaining blocks are spread over the heap, as after many connections.
    #[test]
    fn what_was_freed_goes_back_although_some_blocks_stay() {
        const BLOCKS: usize = 32 << 10;
        const BYTES: usize = 2 << 10;
        let before = Memory::now().resident_bytes;
        let block = |number| vec![number as u8 | 1; BYTES];
        let mut blocks: Vec<Vec<u8>> = (0..BLOCKS).map(block).collect();
        let held = Memory::now().resident_bytes;
        assert!(held - before > (BLOCKS * BYTES / 2) as u64, "{before}, then {held}");
        let mut number = 0;
        blocks.retain(|_| {
            number += 1;
            number % 256 == 0
        });
        let freed = Memory::now();
        assert!(freed.resident_bytes > held / 2, "{held}, then {freed:?}");
        assert!(freed.pooled_bytes > (BLOCKS * BYTES / 2) as u64, "{freed:?}");
        trim();
        let left = Memory::now();
        let gone = (BLOCKS * BYTES / 2) as u64;
        assert!(left.resident_bytes < held - gone, "{held}, then {left:?}");
        assert!(left.pooled_bytes < freed.pooled_bytes - gone, "{freed:?}, then {left:?}");
        assert_eq!(blocks.len(), BLOCKS / 256);
    }
}
