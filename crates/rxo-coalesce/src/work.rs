//! Counts the steps of the engine's loops, for the tests of the worst case.
//!
//! Every loop whose length a sender could influence counts its steps with this module: loops over a bucket, over
//! slots, over the entries of an index. Builds without tests count nothing.

/// Does nothing in builds without tests.
#[cfg(not(test))]
#[inline]
pub(crate) const fn done(_steps: usize) {}

#[cfg(test)]
std::thread_local! {
    static STEPS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// Adds `steps` to the count of this thread.
#[cfg(test)]
pub(crate) fn done(steps: usize) {
    STEPS.set(STEPS.get() + steps as u64);
}

/// Returns the number of steps of this thread so far.
#[cfg(test)]
pub(crate) fn steps() -> u64 {
    STEPS.get()
}
