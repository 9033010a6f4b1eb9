//! Pulse: a counter in shared memory, by which a process of a run sees that another one works.
//!
//! This module is separate because only it maps memory that processes of a run share. Contract: the memory
//! stays mapped as long as the process lives.
#![allow(unsafe_code, reason = "memory that processes share is mapped by a pointer")]

use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The counter that a worker increments in each turn. A process that is forked later shares it, and copies
/// refer to the same counter.
#[derive(Clone, Copy, Debug)]
pub struct Pulse(&'static Page);

#[derive(Debug)]
#[repr(C)]
struct Page {
    beats: AtomicU64,
    /// The present value of [`Duty`], as a number.
    duty: AtomicU8,
}

/// The process that must work at present, because the host depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// No process must work, because nothing is changed on the interfaces.
    Nobody,
    /// The worker must work, and count its turns.
    Worker,
    /// The keeper must work: it makes changes or restores them.
    Keeper,
}

impl Pulse {
    /// Maps the shared memory, which is never unmapped.
    ///
    /// # Errors
    /// If the system has no memory left.
    pub fn new() -> io::Result<Self> {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: the call creates a mapping of one page, at an address that the kernel chooses.
        let page = unsafe { libc::mmap(null_mut(), size_of::<Page>(), access, kind, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the page is zeroed, aligned, never unmapped, and only read and written by atomic
        // operations.
        Ok(Self(unsafe { &*page.cast::<Page>() }))
    }

    /// Returns the counter that the worker increments in each turn.
    #[must_use]
    pub const fn turns(self) -> &'static AtomicU64 {
        &self.0.beats
    }

    /// Returns the present count of the worker's turns.
    pub(crate) fn beats(self) -> u64 {
        self.0.beats.load(Ordering::Relaxed)
    }

    /// Sets the process that must work from now on.
    pub(crate) fn expect(self, duty: Duty) {
        self.0.duty.store(duty as u8, Ordering::Relaxed);
    }

    /// Returns the process that must work at present.
    pub(crate) fn duty(self) -> Duty {
        match self.0.duty.load(Ordering::Relaxed) {
            1 => Duty::Worker,
            2 => Duty::Keeper,
            _ => Duty::Nobody,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duty_is_read_as_it_was_written() {
        let pulse = Pulse::new().unwrap();
        assert_eq!((pulse.duty(), pulse.beats()), (Duty::Nobody, 0));
        for duty in [Duty::Worker, Duty::Keeper, Duty::Nobody] {
            pulse.expect(duty);
            assert_eq!(pulse.duty(), duty);
        }
    }
}
