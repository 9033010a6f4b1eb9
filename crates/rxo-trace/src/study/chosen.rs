//! The counts for the chosen settings only: the flows, and the traffic over time.

use rxo_frame::Instant;

use super::clock::Clock;
use super::course::Steps;
use super::flows::{Flows, NO_FLOW};
use super::rates::Rates;
use super::runs::Runs;

#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) flows: Flows,
    pub(super) course: Steps,
    /// The clock of the packets, which provides the times for the counts over time.
    pub(super) clock: Clock,
    /// The rates of a live interface; `None` for captures.
    pub(super) rates: Option<Rates>,
    /// The runs of segments; `None` if no limits are compared.
    pub(super) runs: Option<Runs>,
}

impl Chosen {
    /// Creates empty counts, with space for `most_flows` flows.
    pub(super) fn new(most_flows: usize) -> Self {
        let flows = Flows::new(most_flows);
        Self { flows, course: Steps::default(), clock: Clock::default(), rates: None, runs: None }
    }

    /// Counts a packet with `wire_bytes` bytes that arrived at `now` on the clock.
    #[inline]
    pub(super) fn arrive(&mut self, now: Instant, wire_bytes: u64) {
        self.course.packet(self.clock.of_records(now), wire_bytes);
    }

    /// Counts a packet that bypasses all engines, and is delivered unchanged at `at` on the clock.
    pub(super) fn deliver_alone(&mut self, at: Instant) {
        self.deliver(at, 1);
        if let Some(rates) = &mut self.rates {
            rates.deliver(NO_FLOW, at);
        }
    }

    /// Counts `deliveries` deliveries at `at` on the clock.
    #[inline]
    pub(super) fn deliver(&mut self, at: Instant, deliveries: u64) {
        self.course.deliver(self.clock.of_records(at), deliveries);
    }
}
