//! The clock of a worker, as a trait.

use std::time::Duration;

use rxo_device::DeviceError;
use rxo_frame::Instant;

/// The clock of a worker, and its ways to wait. The parameters are those of [`Worker`](super::Worker):
/// the sources and sinks of nic and host. A waiter on the system needs their descriptors; one on virtual
/// time needs nothing of them.
pub trait Waiter<NI, NO, HI, HO> {
    /// Returns the time. It never goes back, and is on the clock of the frames' arrivals.
    fn now(&mut self) -> Instant;

    /// Returns the processor time of this thread so far.
    fn cpu_time(&mut self) -> Duration;

    /// Lets `time` pass, or less.
    fn pause(&mut self, time: Duration);

    /// Waits until a wanted source may have frames, a wanted sink may have room, or `timeout` has
    /// passed; it may return earlier. Returns which sources may have frames. A failed device counts as
    /// having some, so that a read returns its error.
    ///
    /// # Errors
    /// If the system refuses to wait.
    fn wait(
        &mut self,
        wanted: Wanted<'_, NI, NO, HI, HO>,
        timeout: Duration,
    ) -> Result<Awake, DeviceError>;
}

/// What a worker waits for; `None` for an end that it does not wait for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a, NI, NO, HI, HO> {
    /// The nic's source, until it has a frame.
    pub nic_source: Option<&'a NI>,
    /// The nic's sink, until it has room.
    pub nic_sink: Option<&'a NO>,
    /// The host's source, until it has a frame.
    pub host_source: Option<&'a HI>,
    /// The host's sink, until it has room.
    pub host_sink: Option<&'a HO>,
}

/// Which sources may have frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awake {
    /// The nic's.
    pub nic: bool,
    /// The host's.
    pub host: bool,
}

impl Awake {
    /// Both may: neither was asked.
    pub const BOTH: Self = Self { nic: true, host: true };
    /// Neither: the timeout has passed.
    pub const NEITHER: Self = Self { nic: false, host: false };
}
