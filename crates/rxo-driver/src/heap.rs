//! The memory that this process takes of the system, and what it has freed of it.
//!
//! glibc keeps freed memory for the next allocation, and gives back only what is free at the end of a heap. After a crowd of
//! connections that is little: one small block that is still used near the end holds everything before it. Other C
//! libraries give back more by themselves, or have no call for it.
#![allow(unsafe_code, reason = "a call of the C library")]

use std::fs;

/// Gives the system what is free, as far as whole pages are. Takes some milliseconds for 100 MB, during which other threads
/// may have to wait for memory; so it is for a time at which little happens. Does nothing where the C library is not glibc.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number, and glibc locks each heap while it looks at it.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Memory of this process, in bytes. 0 where the system does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What it takes of the system: its resident set, with what is freed and not given back.
    pub resident_bytes: u64,
    /// What of that the C library has in its pools: it was freed and serves the next allocations, and [`give_back`] returns
    /// it as far as whole pages are free. An estimate, and at most what is free in the heaps: the anonymous memory that is
    /// resident, less what is in use in the heaps. Stacks and blocks that are mapped by themselves make it larger, memory
    /// that was allocated and never touched makes it smaller. 0 where the C library is not glibc of version 2.33 or later.
    pub pooled_bytes: u64,
}

impl Memory {
    /// Asks the system and the C library, which looks at each of its heaps; takes some microseconds.
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

/// What the C library's heaps have, without blocks that are mapped by themselves.
#[derive(Clone, Copy, Debug, Default)]
struct Heaps {
    used_bytes: u64,
    free_bytes: u64,
}

impl Heaps {
    /// Looked up by its name, because glibc has this only since version 2.33, and the one before counts to 2 GB.
    #[cfg(target_env = "gnu")]
    fn now() -> Self {
        type MallInfo2 = unsafe extern "C" fn() -> libc::mallinfo2;
        // SAFETY: the name ends with a zero byte.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr()) };
        if found.is_null() {
            return Self::default();
        }
        // SAFETY: the C library's function of this name has this type, takes nothing and returns numbers, and locks each
        // heap while it looks at it.
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

    /// As after a crowd of connections: of many blocks a few are left, all over the heap.
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
        give_back();
        let left = Memory::now();
        let gone = (BLOCKS * BYTES / 2) as u64;
        assert!(left.resident_bytes < held - gone, "{held}, then {left:?}");
        assert!(left.pooled_bytes < freed.pooled_bytes - gone, "{freed:?}, then {left:?}");
        assert_eq!(blocks.len(), BLOCKS / 256);
    }
}
