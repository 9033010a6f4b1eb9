//! The waiter of live workers and hosts: waits in real time, on descriptors.

use std::io;
use std::time::Duration;

use rxo_device::{Descriptors, DeviceError};
use rxo_driver::wait::{self, Interest, WaitList};
use rxo_driver::{Bell, clock};
use rxo_frame::Instant;

use crate::switch::MAX_PORTS;
use crate::worker::{Awake, Waiter, Wanted};

/// Waits on descriptors and reads the system's clocks, for the thread that created it.
#[derive(Clone, Copy, Debug)]
pub struct SystemWaiter {
    /// The length of each wait; `None` to wait until a descriptor is ready.
    pub(super) rest: Option<Duration>,
}

impl SystemWaiter {
    /// Creates a waiter for the calling thread. Also makes the system end short waits of this thread on time.
    #[must_use]
    pub fn new() -> Self {
        wait::use_precise_timers();
        Self { rest: None }
    }

    /// Creates a waiter that waits for no descriptor. Whenever there are no frames, the waiter sleeps for `time`, so
    /// that frames accumulate. For measurements of the cost per frame, in which turns without frames must be rare.
    #[must_use]
    pub fn resting(time: Duration) -> Self {
        let mut waiter = Self::new();
        waiter.rest = Some(time);
        waiter
    }
}

impl SystemWaiter {
    /// Waits until a descriptor is ready, `bell` is rung, or `timeout` has passed.
    fn wait_also_for<NI, NO, HI, HO>(
        self,
        bell: Option<&Bell>,
        wanted: Wanted<'_, NI, NO, HI, HO>,
        timeout: Duration,
    ) -> Result<Awake, DeviceError>
    where
        NI: Descriptors,
        NO: Descriptors,
        HI: Descriptors,
        HO: Descriptors,
    {
        if let Some(time) = self.rest {
            wait::pause(time);
            return Ok(Awake::ALL);
        }
        let mut list = WaitList::new();
        let nic = list.add(wanted.nic_source, Interest::Readable);
        list.add(wanted.nic_sink, Interest::Writable);
        list.add(bell, Interest::Readable);
        let mut places = [const { 0..0 }; MAX_PORTS];
        for (host, places) in wanted.hosts.iter().zip(&mut places) {
            *places = list.add(host.source, Interest::Readable);
            list.add(host.sink, Interest::Writable);
        }
        let ready = list.wait(Some(timeout)).map_err(cannot_wait)?;
        let mut awake = Awake { nic: ready.has_any(nic), hosts: 0 };
        for (n, places) in places.into_iter().take(wanted.hosts.len()).enumerate() {
            awake.set_host(n, ready.has_any(places));
        }
        Ok(awake)
    }
}

impl Default for SystemWaiter {
    fn default() -> Self {
        Self::new()
    }
}

impl<NI, NO, HI, HO> Waiter<NI, NO, HI, HO> for SystemWaiter
where
    NI: Descriptors,
    NO: Descriptors,
    HI: Descriptors,
    HO: Descriptors,
{
    fn now(&mut self) -> Instant {
        clock::now()
    }

    fn cpu_time(&mut self) -> Duration {
        Duration::from_nanos(clock::thread_cpu_ns())
    }

    fn pause(&mut self, time: Duration) {
        wait::pause(time);
    }

    fn wait(
        &mut self,
        wanted: Wanted<'_, NI, NO, HI, HO>,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        self.wait_also_for(None, wanted, timeout)
    }
}

/// A waiter that returns as soon as a bell is rung, so that an idle worker ends together with the others.
#[derive(Debug)]
pub(super) struct WaiterWithBell<'b> {
    pub(super) waiter: SystemWaiter,
    pub(super) bell: Option<&'b Bell>,
}

impl<NI, NO, HI, HO> Waiter<NI, NO, HI, HO> for WaiterWithBell<'_>
where
    NI: Descriptors,
    NO: Descriptors,
    HI: Descriptors,
    HO: Descriptors,
{
    fn now(&mut self) -> Instant {
        clock::now()
    }

    fn cpu_time(&mut self) -> Duration {
        Duration::from_nanos(clock::thread_cpu_ns())
    }

    fn pause(&mut self, time: Duration) {
        wait::pause(time);
    }

    fn wait(
        &mut self,
        wanted: Wanted<'_, NI, NO, HI, HO>,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        self.waiter.wait_also_for(self.bell, wanted, timeout)
    }
}

pub(super) fn cannot_wait(source: io::Error) -> DeviceError {
    DeviceError::System { message: "cannot wait for frames".to_owned(), source }
}
