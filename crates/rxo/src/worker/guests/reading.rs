//! All counters of a nic and its guests at one instant.

use std::ops::Sub;
use std::time::Duration;

use rxo_device::{SinkCounters, SourceCounters};

use crate::switch::SwitchCounters;
use crate::worker::{Imbalance, Reading};

/// All counters of a nic and its guests at one instant. They are totals; [`GuestsReading::since`] gives
/// those of an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestsReading {
    /// Time since the guests' workers began to run.
    pub elapsed: Duration,
    /// Processor time of their thread since then, user and system together.
    pub cpu: Duration,
    /// Counters of the nic's source.
    pub nic_in: SourceCounters,
    /// Counters of the nic's sink.
    pub nic_out: SinkCounters,
    /// Frames from the nic that were dropped because more came than the workers could take.
    pub overload: u64,
    /// As [`Reading::not_scheduled`].
    pub not_scheduled: u64,
    /// As [`Reading::unaccounted`].
    pub unaccounted: u64,
    /// As [`Reading::unsent`].
    pub unsent: u64,
    /// As [`Reading::imbalance`], of the nic and the switch. Those of each guest's worker are in its reading.
    pub imbalance: Imbalance,
    /// Counters of the switch.
    pub switch: SwitchCounters,
    /// A reading for each guest: its nic is its port of the switch, and its times are those of all.
    pub guests: Vec<Reading>,
}

impl GuestsReading {
    /// The counters and times since `earlier`, a reading of the same guests.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let none = Reading::default();
        let before = earlier.guests.iter().chain(std::iter::repeat(&none));
        Self {
            elapsed: self.elapsed.saturating_sub(earlier.elapsed),
            cpu: self.cpu.saturating_sub(earlier.cpu),
            nic_in: self.nic_in.zip_with(earlier.nic_in, u64::sub),
            nic_out: self.nic_out.zip_with(earlier.nic_out, u64::sub),
            overload: self.overload - earlier.overload,
            not_scheduled: self.not_scheduled - earlier.not_scheduled,
            unaccounted: self.unaccounted - earlier.unaccounted,
            unsent: self.unsent - earlier.unsent,
            imbalance: self.imbalance.zip_with(earlier.imbalance, u64::sub),
            switch: self.switch.since(&earlier.switch),
            guests: self.guests.iter().zip(before).map(|(now, then)| now.since(then)).collect(),
        }
    }
}
