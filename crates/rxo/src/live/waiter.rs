//! Real time.

use std::io;
use std::time::Duration;

use rxo_device::{Descriptors, DeviceError};
use rxo_driver::clock;
use rxo_driver::wait::{self, Interest, WaitList};
use rxo_frame::Instant;

use crate::worker::{Awake, Waiter, Wanted};

/// Waits on descriptors and reads the system's clocks, for the thread that made it.
#[derive(Clone, Copy, Debug)]
pub struct SystemWaiter {
    _made_by_new: (),
}

impl SystemWaiter {
    /// Makes a waiter. From then on short waits of this thread end on time.
    #[must_use]
    pub fn new() -> Self {
        wait::use_precise_timers();
        Self { _made_by_new: () }
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
        let Wanted { nic_source, nic_sink, host_source, host_sink } = wanted;
        let mut list = WaitList::new();
        let nic = list.add(nic_source, Interest::Readable);
        let host = list.add(host_source, Interest::Readable);
        list.add(nic_sink, Interest::Writable);
        list.add(host_sink, Interest::Writable);
        let ready = list.wait(Some(timeout)).map_err(cannot_wait)?;
        Ok(Awake { nic: ready.has_any(nic), host: ready.has_any(host) })
    }
}

pub(super) fn cannot_wait(source: io::Error) -> DeviceError {
    DeviceError::System { message: "cannot wait for frames".to_owned(), source }
}
