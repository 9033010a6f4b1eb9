//! The steps that the engine takes, counted for the tests of the worst case.
//!
//! Every loop whose length a sender could influence counts its steps here: over a bucket, over slots, over what an
//! index has. In a build without tests nothing is counted.

/// Adds `steps` to the steps of this thread.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn done(_steps: usize) {}

#[cfg(test)]
std::thread_local! {
    static STEPS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// Adds `steps` to the steps of this thread.
#[cfg(test)]
pub(crate) fn done(steps: usize) {
    STEPS.set(STEPS.get() + steps as u64);
}

/// The steps of this thread so far.
#[cfg(test)]
pub(crate) fn steps() -> u64 {
    STEPS.get()
}
