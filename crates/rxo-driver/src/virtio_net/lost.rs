//! Lost memory: protects this process from mapped memory that disappears. An access beyond the end of a file
//! that has shrunk, or to a huge page that the system does not have, raises SIGBUS, which would kill this
//! process.
//!
//! The signal handler of this module replaces the whole mapping by zeros and records the loss, so that the access
//! succeeds and the mapping's owner can detect it. Any SIGBUS outside guarded mappings is passed to the previous
//! handler.
//!
//! Contract: the handler calls only `mmap` and atomics, and allocates nothing. With its files, a hostile front
//! end can end only its own connection.
#![allow(unsafe_code, reason = "a signal handler, which maps memory")]

use std::io;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use crate::sys::check;

/// Maximum number of guarded mappings in a process: 32 guests with as many regions each as a session may
/// have.
const MOST: usize = 1_024;

/// The address range of a guarded mapping. An end of 0 means no mapping.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    /// Number of changes to the range, so that a reader detects a change made while it reads.
    changes: AtomicUsize,
    is_lost: AtomicBool,
}

static SLOTS: [Slot; MOST] = [const { Slot::new() }; MOST];

/// The action for SIGBUS before this module's handler was installed. It is set once, before a slot is used.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// The start address of a slot that is reserved but has no mapping yet.
const TAKEN: usize = 1;

/// A mapping that is guarded until this value is dropped. Drop it before the memory is unmapped.
pub(super) struct Guard(&'static Slot);

/// Reports whether a guarded mapping has lost its memory. Valid while the mapping exists.
#[derive(Clone, Copy)]
pub(crate) struct Loss(&'static Slot);

impl Slot {
    const fn new() -> Self {
        Self {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            changes: AtomicUsize::new(0),
            is_lost: AtomicBool::new(false),
        }
    }

    /// Returns the address range of the mapping; `None` if there is no mapping, or another thread is changing
    /// the slot. A range from the start of one mapping to the end of the next would include the memory
    /// between them. A mapping that is being accessed does not change.
    fn range(&self) -> Option<Range<usize>> {
        let changes = self.changes.load(Ordering::Acquire);
        let end = self.end.load(Ordering::Acquire);
        let start = self.start.load(Ordering::Acquire);
        (self.changes.load(Ordering::Relaxed) == changes && start < end).then_some(start..end)
    }

    /// Sets the address range of a slot that this thread has reserved.
    fn set(&self, start: usize, end: usize) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.start.store(start, Ordering::Release);
        self.end.store(end, Ordering::Release);
    }

    /// Clears the address range. The start is cleared last, because another thread may then reserve the slot.
    fn clear(&self) {
        self.end.store(0, Ordering::Release);
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.start.store(0, Ordering::Release);
    }
}

impl Guard {
    /// Guards the mapping of `bytes` bytes at `start`.
    ///
    /// # Errors
    /// If there are too many mappings, or the system refuses the handler.
    ///
    /// # Safety
    /// The memory must be a mapping that this process may replace by zeros at any time: it is accessed
    /// only through raw pointers and atomics.
    pub(super) unsafe fn new(start: NonNull<u8>, bytes: usize) -> io::Result<Self> {
        handle()?;
        let is_free = |slot: &&Slot| {
            let order = Ordering::AcqRel;
            slot.start.compare_exchange(0, TAKEN, order, Ordering::Relaxed).is_ok()
        };
        let slot = SLOTS.iter().find(is_free).ok_or_else(|| {
            io::Error::other(format!("there are {MOST} regions of memory in this process already"))
        })?;
        slot.is_lost.store(false, Ordering::Relaxed);
        let start = start.as_ptr().expose_provenance();
        slot.set(start, start + bytes);
        Ok(Self(slot))
    }

    /// Returns the flag that is set once the memory is lost.
    pub(super) const fn loss(&self) -> Loss {
        Loss(self.0)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.clear();
    }
}

impl Loss {
    /// Returns `true` if the memory is lost. Reads from lost memory return zeros, and writes to it reach no
    /// other process.
    pub(crate) fn is_lost(self) -> bool {
        self.0.is_lost.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Loss").field(&self.is_lost()).finish()
    }
}

/// Installs the SIGBUS handler, unless it is installed already.
fn handle() -> io::Result<()> {
    static HANDLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let done = HANDLED.get_or_init(|| install().map_err(|error| error.raw_os_error().unwrap_or(0)));
    done.map_err(io::Error::from_raw_os_error)
}

fn install() -> io::Result<()> {
    // SAFETY: the structure has only integers and pointers, for which zeros are valid.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the call only reads the signal action; the structure is live.
    check(unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut before) })?;
    BEFORE.store(Box::into_raw(Box::new(before)), Ordering::Release);
    install_handler()
}

/// Makes this module's handler the action for SIGBUS. Async-signal-safe.
fn install_handler() -> io::Result<()> {
    // SAFETY: the structure has only integers and pointers, for which zeros are valid.
    let mut own: libc::sigaction = unsafe { std::mem::zeroed() };
    own.sa_sigaction = on_bus_error as *const () as usize;
    own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the form that `SA_SIGINFO` asks for, and is async-signal-safe.
    check(unsafe { libc::sigaction(libc::SIGBUS, &raw const own, ptr::null_mut()) })?;
    Ok(())
}

extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a live structure, whose bytes are all set.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    let lost = mapping_at(code, address);
    if let Some((slot, range)) = lost
        && put_zeros(range.start, range.len())
    {
        slot.is_lost.store(true, Ordering::Relaxed);
        return;
    }
    // SAFETY: these are the kernel's own arguments.
    let goes_on = unsafe { call_previous(signal, info, context) };
    // Rust's own handler resets the action to the default, but the memory of guests must stay guarded.
    if goes_on && code <= 0 {
        // An error cannot be reported here: without the action, the next fault kills the process.
        let _ = install_handler();
    }
}

/// Returns the mapping whose access raised a signal with this code, and its address range; `None` if there is
/// none. A signal that a process sent has the sender's number in place of an address.
fn mapping_at(code: libc::c_int, address: usize) -> Option<(&'static Slot, Range<usize>)> {
    let mut ranges = SLOTS.iter().filter_map(|slot| Some((slot, slot.range()?)));
    ranges.find(|(_, range)| code > 0 && range.contains(&address))
}

/// Replaces a mapping by zeros. Returns `false` if the system refuses. Preserves `errno`.
fn put_zeros(start: usize, bytes: usize) -> bool {
    // SAFETY: the location of this thread's `errno` is always valid.
    let errno = unsafe { *libc::__errno_location() };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let start = ptr::with_exposed_provenance_mut(start);
    // SAFETY: the caller that guarded the mapping has guaranteed that it may be replaced.
    let mapped = unsafe { libc::mmap(start, bytes, access, flags, -1, 0) };
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    mapped != libc::MAP_FAILED
}

/// Calls the previous handler. Returns `false` if the default action follows: the signal, or the repeated
/// access, then kills the process.
///
/// # Safety
/// The arguments must be those of a signal handler.
unsafe fn call_previous(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) -> bool {
    // SAFETY: the kernel passes a live structure.
    let is_sent = unsafe { (*info).si_code } <= 0;
    // SAFETY: the handler is installed after this was set, to a structure that is never freed.
    let before = unsafe { &*BEFORE.load(Ordering::Acquire) };
    match before.sa_sigaction {
        libc::SIG_IGN if is_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: both calls take only numbers. The signal is blocked until the handler returns.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                if is_sent {
                    libc::raise(signal);
                }
            }
            return false;
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: with this flag the number is the address of such a function.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without the flag the number is the address of such a function.
            let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn only_an_access_loses_memory() {
        let mut memory = vec![0_u8; 64];
        let start = NonNull::new(memory.as_mut_ptr()).unwrap();
        // SAFETY: nothing raises the signal here, so that nothing is replaced.
        let guard = unsafe { Guard::new(start, memory.len()) }.unwrap();
        let inside = start.addr().get() + 1;
        assert!(mapping_at(libc::BUS_ADRERR, inside).is_some());
        assert!(mapping_at(libc::SI_USER, inside).is_none(), "sent by a process");
        assert!(mapping_at(libc::BUS_ADRERR, inside + 64).is_none());
        drop(guard);
        assert!(mapping_at(libc::BUS_ADRERR, inside).is_none());
    }

    #[test]
    fn a_mapping_stays_guarded_while_other_threads_end_theirs() {
        const ROUNDS: usize = 20_000;
        let guard_and_end = || {
            let mut memory = vec![0_u8; 64];
            let start = NonNull::new(memory.as_mut_ptr()).unwrap();
            for _ in 0..ROUNDS {
                // SAFETY: nothing raises the signal for this memory, so that nothing is replaced.
                let guard = unsafe { Guard::new(start, memory.len()) }.unwrap();
                assert!(mapping_at(libc::BUS_ADRERR, start.addr().get()).is_some());
                drop(guard);
            }
        };
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(guard_and_end);
            }
        });
    }

    #[test]
    fn a_signal_that_was_sent_leaves_memory_guarded() {
        let mut memory = vec![0_u8; 64];
        let start = NonNull::new(memory.as_mut_ptr()).unwrap();
        // SAFETY: no access to this memory raises the signal, so that nothing is replaced.
        let _guard = unsafe { Guard::new(start, memory.len()) }.unwrap();
        // SAFETY: the call takes only a number; the handler that was there before is Rust's, which returns.
        unsafe { libc::raise(libc::SIGBUS) };
        // SAFETY: the structure has only integers and pointers, for which zeros are valid.
        let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: the call only reads the signal action; the structure is live.
        unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut now) };
        assert_eq!(now.sa_sigaction, on_bus_error as *const () as usize);
    }

    /// The start of one mapping with the end of the next would replace the memory between them.
    #[test]
    fn a_range_is_never_made_of_two() {
        const ROUNDS: usize = 200_000;
        let slot = Slot::new();
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for _ in 0..ROUNDS {
                    slot.set(10, 20);
                    slot.clear();
                    slot.set(80, 90);
                    slot.clear();
                }
            });
            while !writer.is_finished() {
                let range = slot.range();
                assert!([None, Some(10..20), Some(80..90)].contains(&range), "{range:?}");
            }
        });
    }
}
