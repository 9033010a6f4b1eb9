//! Targets `ring-device` and `ring-driver`: each side of a virtqueue over memory that a hostile other
//! side writes.
//!
//! They run the crate's own test harness, which its property tests run too.

#[path = "../../../crates/rxo-virtqueue/tests/hostile/harness/mod.rs"]
mod harness;

/// The first two bytes choose the ring; the others are what the driver writes and the device does.
///
/// # Panics
/// If the device writes where it may not, or finds something other than a naive reader.
pub fn device(data: &[u8]) {
    crate::operations::count(harness::device::run(data));
}

/// The first two bytes choose the ring; the others are what the device writes and the driver does.
///
/// # Panics
/// If the driver writes where it may not, or gives back a chain that was not posted.
pub fn driver(data: &[u8]) {
    crate::operations::count(harness::driver::run(data));
}
