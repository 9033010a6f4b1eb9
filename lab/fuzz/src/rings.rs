//! Targets `ring-device` and `ring-driver`: each side of a virtqueue, with memory that a hostile other side
//! writes.
//!
//! They run the crate's own test harness, which its property tests run too.

#[path = "../../../crates/rxo-virtqueue/tests/hostile/harness/mod.rs"]
mod harness;

/// Runs the device side. The first two bytes select the ring; the others encode the driver's writes and the
/// device's calls.
///
/// # Panics
/// If the device writes outside its buffers, or reads other chains than a naive reader.
pub fn device(data: &[u8]) {
    crate::operations::count(harness::device::run(data));
}

/// Runs the driver side. The first two bytes select the ring; the others encode the device's writes and the
/// driver's calls.
///
/// # Panics
/// If the driver writes outside its memory, or returns a chain that was not posted.
pub fn driver(data: &[u8]) {
    crate::operations::count(harness::driver::run(data));
}
