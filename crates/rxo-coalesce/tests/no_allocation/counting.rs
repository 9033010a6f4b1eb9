//! The system's allocator with counts of each thread's allocations.
//!
//! Tests run in threads of their own, so counts per thread keep them apart.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static HELD_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The number of allocations of this thread so far.
#[allow(dead_code, reason = "each test binary counts what it is about")]
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// The number of bytes that this thread has allocated and not freed.
#[allow(dead_code, reason = "each test binary counts what it is about")]
pub(crate) fn held_bytes() -> i64 {
    HELD_BYTES.get()
}

// A thread may still allocate after its thread-locals are gone; such allocations are not counted.

fn count() {
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

fn weigh(taken: usize, given_back: usize) {
    let change = taken as i64 - given_back as i64;
    let _ = HELD_BYTES.try_with(|held| held.set(held.get() + change));
}

// SAFETY: every call is passed on unchanged to the system's allocator, which upholds the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        weigh(layout.size(), 0);
        // SAFETY: the caller's promises about `layout` are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        weigh(0, layout.size());
        // SAFETY: the pointer came from `System` under this layout, as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        weigh(new_size, layout.size());
        // SAFETY: as for `dealloc`, and the caller's promises about `new_size` are passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}
