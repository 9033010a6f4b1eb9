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

/// The memory that this process takes of the system, in bytes: its resident set, with what is freed and not given back.
/// 0 if the system does not say.
#[must_use]
pub fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map_or(0, |kib| kib << 10)
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    /// As after a crowd of connections: of many blocks a few are left, all over the heap.
    #[test]
    fn what_was_freed_goes_back_although_some_blocks_stay() {
        const BLOCKS: usize = 32 << 10;
        const BYTES: usize = 2 << 10;
        let before = resident_bytes();
        let block = |number| vec![number as u8 | 1; BYTES];
        let mut blocks: Vec<Vec<u8>> = (0..BLOCKS).map(block).collect();
        let held = resident_bytes();
        assert!(held - before > (BLOCKS * BYTES / 2) as u64, "{before}, then {held}");
        let mut number = 0;
        blocks.retain(|_| {
            number += 1;
            number % 256 == 0
        });
        give_back();
        let left = resident_bytes();
        assert!(left < held - (BLOCKS * BYTES / 2) as u64, "{held}, then {left}");
        assert_eq!(blocks.len(), BLOCKS / 256);
    }
}
