//! Time, as the worker sees it.

use std::time::Duration;

use rxo_device::DeviceError;
use rxo_frame::Instant;

/// The clock of a worker, and its ways to let time pass. `N` and `H` are the sources of nic and
/// host; a waiter on the system needs their descriptors, one on virtual time needs nothing.
pub trait Waiter<N, H> {
    /// Now. Never goes back, and is on the scale of the frames' arrivals.
    fn now(&mut self) -> Instant;

    /// The processor time of this thread so far.
    fn cpu_time(&mut self) -> Duration;

    /// Lets `time` pass, or less.
    fn pause(&mut self, time: Duration);

    /// Returns when one of the sources given may have something, or `timeout` has passed, or
    /// earlier. A source that failed counts as having something.
    ///
    /// # Errors
    /// When the system refuses to wait.
    fn wait(
        &mut self,
        nic: Option<&N>,
        host: Option<&H>,
        timeout: Duration,
    ) -> Result<(), DeviceError>;
}
