//! Real time.

use std::os::fd::AsFd;
use std::time::Duration;

use rxo_device::DeviceError;
use rxo_driver::{clock, wait};
use rxo_frame::Instant;

use crate::worker::Waiter;

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

impl<N: AsFd, H: AsFd> Waiter<N, H> for SystemWaiter {
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
        nic: Option<&N>,
        host: Option<&H>,
        timeout: Duration,
    ) -> Result<(), DeviceError> {
        let ready = match (nic, host) {
            (Some(nic), Some(host)) => {
                wait::wait_readable(&[nic.as_fd(), host.as_fd()], Some(timeout))
            }
            (Some(nic), None) => wait::wait_readable(&[nic.as_fd()], Some(timeout)),
            (None, Some(host)) => wait::wait_readable(&[host.as_fd()], Some(timeout)),
            (None, None) => wait::wait_readable(&[], Some(timeout)),
        };
        // What is ready shows when it is asked.
        ready.map(|_| ()).map_err(|source| DeviceError::System {
            message: "cannot wait for frames".to_owned(),
            source,
        })
    }
}
