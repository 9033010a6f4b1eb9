//! Real time.

use std::os::fd::AsFd;
use std::time::Duration;

use rxo_device::DeviceError;
use rxo_driver::clock;
use rxo_driver::wait::{self, Interest};
use rxo_frame::Instant;

use crate::worker::{Awake, Waiter, Wanted};

/// Waits on descriptors and reads the system's clocks, for the thread it was made on.
#[derive(Clone, Copy, Debug)]
pub struct SystemWaiter {
    _made_by_new: (),
}

impl SystemWaiter {
    /// Makes this thread's pauses and waits end on time, too.
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

impl<NI: AsFd, NO: AsFd, HI: AsFd, HO: AsFd> Waiter<NI, NO, HI, HO> for SystemWaiter {
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
        let ends = [
            nic_source.map(|nic| (nic.as_fd(), Interest::Readable)),
            host_source.map(|host| (host.as_fd(), Interest::Readable)),
            nic_sink.map(|nic| (nic.as_fd(), Interest::Writable)),
            host_sink.map(|host| (host.as_fd(), Interest::Writable)),
        ];
        let ready = wait::wait_for(ends.into_iter().flatten(), Some(timeout));
        let ready = ready.map_err(|source| DeviceError::System {
            message: "cannot wait for frames".to_owned(),
            source,
        })?;
        let host_at = usize::from(nic_source.is_some());
        Ok(Awake {
            nic: nic_source.is_some() && ready.has(0),
            host: host_source.is_some() && ready.has(host_at),
        })
    }
}
