//! Waiter: the clock of a worker and its ways to wait, as a trait.

use std::time::Duration;

use rxo_device::DeviceError;
use rxo_frame::Instant;

use super::next::LONGEST_WAIT;
use super::work_clock::WorkClock;

/// The clock of a worker, and its ways to wait. The parameters are those of [`Worker`](super::Worker): the
/// sources and sinks of nic and host. A waiter on the system uses their descriptors; a waiter on virtual time
/// does not use them.
pub trait Waiter<NI, NO, HI, HO> {
    /// Returns the time, which never decreases, on the same clock as the frames' arrival times.
    fn now(&mut self) -> Instant;

    /// Returns the processor time that this thread has used so far.
    fn cpu_time(&mut self) -> Duration;

    /// Waits for at most `time`.
    fn pause(&mut self, time: Duration);

    /// Waits until a wanted source may have frames, a wanted sink may have free space, or `timeout` has passed;
    /// may return earlier. Returns which sources may have frames. The source of a failed device is among them,
    /// so that reading from it returns the error.
    ///
    /// # Errors
    /// If the system refuses to wait.
    fn wait(
        &mut self,
        wanted: Wanted<'_, NI, NO, HI, HO>,
        timeout: Duration,
    ) -> Result<Awake, DeviceError>;
}

/// Reads the time of `waiter`, and records it in `work`. Returns the time.
pub(super) fn timed<NI, NO, HI, HO, W: Waiter<NI, NO, HI, HO>>(
    waiter: &mut W,
    work: &mut WorkClock,
) -> Instant {
    let now = waiter.now();
    work.note(now, || waiter.cpu_time());
    now
}

/// Waits for the `wanted` events, at most for `timeout`. Returns which sources may have frames. If `is_brief`, because
/// the system may not report an event, waits at most for [`BRIEF_WAIT`].
pub(super) fn wait<NI, NO, HI, HO, W: Waiter<NI, NO, HI, HO>>(
    waiter: &mut W,
    wanted: Wanted<'_, NI, NO, HI, HO>,
    timeout: Duration,
    is_brief: bool,
) -> Result<Awake, DeviceError> {
    let timeout = if is_brief { timeout.min(BRIEF_WAIT) } else { timeout };
    let awake = waiter.wait(wanted, timeout)?;
    // A link that is down reports nothing when its device is deleted; reading from it returns the error.
    let asks_all = awake == Awake::NONE && timeout >= LONGEST_WAIT;
    Ok(if asks_all { Awake::ALL } else { awake })
}

/// The maximum wait while the system may not report an event: memory that is held elsewhere becomes free
/// without an event, and some devices have free space before their descriptor shows it.
const BRIEF_WAIT: Duration = Duration::from_millis(1);

/// The sources and sinks for which a worker waits.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a, NI, NO, HI, HO> {
    /// The nic's source, if the worker waits until the source has a frame.
    pub nic_source: Option<&'a NI>,
    /// The nic's sink, if the worker waits until the sink has free space.
    pub nic_sink: Option<&'a NO>,
    /// The sources and sinks of the host, or of all guests.
    pub hosts: &'a [WantedHost<'a, HI, HO>],
}

/// The source and the sink of one host for which a worker waits. Each is `None` if the worker does not wait
/// for it.
#[derive(Debug)]
pub struct WantedHost<'a, HI, HO> {
    /// The host's source, if the worker waits until the source has a frame.
    pub source: Option<&'a HI>,
    /// The host's sink, if the worker waits until the sink has free space.
    pub sink: Option<&'a HO>,
}

impl<HI, HO> Clone for WantedHost<'_, HI, HO> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<HI, HO> Copy for WantedHost<'_, HI, HO> {}

impl<HI, HO> WantedHost<'_, HI, HO> {
    /// A host for whose source and sink the worker does not wait.
    pub const NONE: Self = Self { source: None, sink: None };
}

/// The sources that may have frames, as the result of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Awake {
    /// `true` if the nic's source may have frames.
    pub nic: bool,
    /// A bit mask: bit `n` is set if the source of host `n` may have frames.
    pub hosts: u64,
}

impl Awake {
    /// The result that all sources may have frames, because no source was checked.
    pub const ALL: Self = Self { nic: true, hosts: u64::MAX };
    /// The result that no source has frames, because the timeout has passed.
    pub const NONE: Self = Self { nic: false, hosts: 0 };

    /// Returns `true` if the source of host `n`, counted from 0, may have frames.
    #[must_use]
    pub const fn host(self, n: usize) -> bool {
        n < u64::BITS as usize && self.hosts & 1 << n != 0
    }

    /// Sets the bit of host `n`, counted from 0, if `may` is `true`.
    pub const fn set_host(&mut self, n: usize, may: bool) {
        self.hosts |= (may as u64) << n;
    }
}
