//! The counters of a run: of all hosts together, and of each guest.

use super::{GuestsReading, Reading};

/// The counters of a run or of an interval. Those of a host alone come [from](From) a [`Reading`], those of
/// guests from a [`GuestsReading`].
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// The nic's, and the sum of all hosts'.
    pub all: Reading,
    /// Those of each guest; none for `rxo run`.
    pub guests: Vec<Reading>,
}

impl From<Reading> for Readings {
    fn from(all: Reading) -> Self {
        Self { all, guests: Vec::new() }
    }
}

impl From<&GuestsReading> for Readings {
    fn from(reading: &GuestsReading) -> Self {
        let GuestsReading { elapsed, cpu, nic_in, nic_out, overload, guests, .. } = reading;
        let mut all = guests.iter().fold(Reading::default(), |sum, guest| sum.plus(guest));
        // What the switch and the queues drop is lost beside what the nic loses.
        let queues = all.nic_in.ring_drops;
        let (dropped, dropped_frames) = (all.nic_out.dropped, all.nic_out.dropped_frames);
        (all.elapsed, all.cpu, all.nic_in, all.nic_out) = (*elapsed, *cpu, *nic_in, *nic_out);
        all.nic_in.ring_drops += queues;
        all.nic_out.dropped += dropped;
        all.nic_out.dropped_frames += dropped_frames;
        all.overload = *overload;
        Self { all, guests: guests.clone() }
    }
}

impl Readings {
    /// The counters since `earlier`, of the same run.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self { all: self.all.since(&earlier.all), guests: self.zip_with(earlier, Reading::since) }
    }

    /// The sum of two parts of a run.
    #[must_use]
    pub fn plus(&self, later: &Self) -> Self {
        Self { all: later.all.plus(&self.all), guests: later.zip_with(self, Reading::plus) }
    }

    fn zip_with(&self, other: &Self, apply: fn(&Reading, &Reading) -> Reading) -> Vec<Reading> {
        let none = Reading::default();
        let others = other.guests.iter().chain(std::iter::repeat(&none));
        self.guests.iter().zip(others).map(|(ours, theirs)| apply(ours, theirs)).collect()
    }
}
