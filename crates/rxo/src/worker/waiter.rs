//! Time, as the worker sees it.

use std::time::Duration;

use rxo_device::DeviceError;
use rxo_frame::Instant;

/// The clock of a worker, and its ways to let time pass. The parameters are those of a worker: the
/// sources and sinks of nic and host. A waiter on the system needs their descriptors, one on virtual
/// time needs nothing.
pub trait Waiter<NI, NO, HI, HO> {
    /// Now. Never goes back, and is on the scale of the frames' arrivals.
    fn now(&mut self) -> Instant;

    /// The processor time of this thread so far.
    fn cpu_time(&mut self) -> Duration;

    /// Lets `time` pass, or less.
    fn pause(&mut self, time: Duration);

    /// Returns when one of the sources wanted may have something, one of the sinks wanted may have
    /// room, `timeout` has passed, or earlier. Says which sources may have something; a device that
    /// failed has.
    ///
    /// # Errors
    /// When the system refuses to wait.
    fn wait(
        &mut self,
        wanted: Wanted<'_, NI, NO, HI, HO>,
        timeout: Duration,
    ) -> Result<Awake, DeviceError>;
}

/// What a worker waits for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a, NI, NO, HI, HO> {
    /// That the nic has a frame.
    pub nic_source: Option<&'a NI>,
    /// That the nic takes frames again.
    pub nic_sink: Option<&'a NO>,
    /// That the host has sent a frame.
    pub host_source: Option<&'a HI>,
    /// That the host's device takes frames again.
    pub host_sink: Option<&'a HO>,
}

/// Which sources may have something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awake {
    /// The nic's.
    pub nic: bool,
    /// The host's.
    pub host: bool,
}

impl Awake {
    /// Both: nobody has looked.
    pub const BOTH: Self = Self { nic: true, host: true };
    /// Neither: the time was up.
    pub const NEITHER: Self = Self { nic: false, host: false };
}
