//! The time, and the timers of connections, including connections in TIME-WAIT.

use rxo_frame::Instant;
use rxo_tcp::TimeWait;

use super::connections::Connections;
use super::last_acks::LastAcks;
use super::timers::Timers;
use crate::HostConfig;
use crate::timed_flows::TimedFlows;

/// The current time, with the timers of open connections and of connections in TIME-WAIT.
#[derive(Debug)]
pub(super) struct Clock {
    /// The time at which the last round began.
    pub(super) now: Instant,
    pub(super) timers: Timers,
    pub(super) time_waits: TimedFlows<TimeWait>,
    pub(super) last_acks: LastAcks,
}

impl Clock {
    pub(super) fn new(config: &HostConfig) -> Self {
        Self {
            now: Instant::ZERO,
            timers: Timers::default(),
            time_waits: TimedFlows::new(config.time_waits, config.secret[0]),
            last_acks: LastAcks::default(),
        }
    }

    /// Marks connections with expired timers to be served, and removes connections whose TIME-WAIT is over.
    pub(super) fn wake<B>(&mut self, connections: &mut Connections<B>) {
        while let Some(place) = self.timers.take_due(self.now) {
            connections.touch(place);
        }
        if self.time_waits.next_at().is_some_and(|at| at <= self.now) {
            while let Some(key) = self.time_waits.take_due(self.now) {
                connections.free_port(&key.reversed());
            }
        }
    }
}
