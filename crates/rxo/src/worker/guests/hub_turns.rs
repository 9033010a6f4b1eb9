//! Turns and waits of a hub that has a thread: the first one, and those beyond it.
//!
//! Separate from the hub's work on frames, which runs without threads too. Contract: a hub on a thread waits for its
//! queue of the nic and for its wake-up, never for a guest. Hubs wait for each other only for the locks of the common memory
//! and of the budgets.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use rxo_device::{Descriptors, DeviceError, FrameSink, FrameSource};
use rxo_frame::Instant;

use super::hub::Hub;
use super::wake_up::WakeUp;
use crate::worker::next::Turn;
use crate::worker::waiter::{timed, wait};
use crate::worker::{Awake, Waiter, Wanted, WantedHost};

/// The hub's wake-up, as the source for which the hub waits in addition to its nic.
pub struct HubWakeUp(pub(super) Arc<WakeUp>);

impl Descriptors for HubWakeUp {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        self.0.visit_descriptors(visit);
    }
}

impl<NI: FrameSource, NO: FrameSink> Hub<NI, NO> {
    /// Receives a batch from the nic, and passes on what the guests sent.
    ///
    /// # Errors
    /// If the nic failed.
    pub(super) fn take_turn<W: Waiter<NI, NO, HubWakeUp, HubWakeUp>>(
        &mut self,
        waiter: &mut W,
        awake: Awake,
    ) -> Result<Turn, DeviceError> {
        if self.is_armed.take() {
            self.wake_up.0.disarm();
        }
        let received = self.receive(awake.nic, |work| timed(waiter, work));
        let now = self.now();
        let served = self.serve(now);
        Ok(Turn { from_nic: received?, from_host: served?, now })
    }

    /// Returns the time at which a turn is due even if nothing arrives: to pass on frames, or to check the guests'
    /// threads.
    pub(super) fn next_turn(&self) -> Option<Instant> {
        self.deadline().into_iter().chain(self.looks_at()).min()
    }

    /// Waits for the nic, and for frames from guests.
    ///
    /// # Errors
    /// If the system refuses to wait.
    pub(super) fn wait<W: Waiter<NI, NO, HubWakeUp, HubWakeUp>>(
        &self,
        waiter: &mut W,
        timeout: Duration,
    ) -> Result<Awake, DeviceError> {
        self.wake_up.0.arm();
        self.is_armed.set(true);
        if self.deadline().is_some_and(|at| at <= self.now()) {
            return Ok(Awake::ALL);
        }
        let is_starved = self.source.is_starved();
        let wanted = Wanted {
            nic_source: (!is_starved).then_some(&self.source),
            nic_sink: self.outlet.wanted(),
            hosts: &[WantedHost { source: Some(&self.wake_up), sink: None }],
        };
        let mut awake = wait(waiter, wanted, timeout, is_starved || self.outlet.is_blocked())?;
        awake.nic |= is_starved;
        Ok(awake)
    }
}
