//! The counters of a run: of all hosts together, and of each guest.

use super::{Coalescing, GuestsReading, Reading};
use crate::switch::SwitchCounters;

/// The counters of a run or of an interval. Those of a host alone come [from](From) a [`Reading`], those of
/// guests from a [`GuestsReading`].
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// The nic's, and the sum of all hosts'.
    pub all: Reading,
    /// Those of each guest; none for `rxo run`.
    pub guests: Vec<Reading>,
    /// Those of the switch between the nic and the guests; `None` without one.
    pub switch: Option<SwitchCounters>,
}

impl From<Reading> for Readings {
    fn from(all: Reading) -> Self {
        Self { all, ..Self::default() }
    }
}

impl From<&GuestsReading> for Readings {
    fn from(reading: &GuestsReading) -> Self {
        let GuestsReading { elapsed, cpu, nic_in, nic_out, guests, switch, .. } = reading;
        let mut all = guests.iter().fold(Reading::default(), |sum, guest| sum.plus(guest));
        all.coalescing = together(&all.coalescing, guests);
        // What the switch and the queues drop is lost beside what the nic loses.
        let queues = all.nic_in.ring_drops;
        let (dropped, dropped_frames) = (all.nic_out.dropped, all.nic_out.dropped_frames);
        (all.elapsed, all.cpu, all.nic_in, all.nic_out) = (*elapsed, *cpu, *nic_in, *nic_out);
        all.nic_in.ring_drops += queues;
        all.nic_out.dropped += dropped;
        all.nic_out.dropped_frames += dropped_frames;
        (all.overload, all.not_scheduled) = (reading.overload, reading.not_scheduled);
        (all.unaccounted, all.unsent) = (reading.unaccounted, reading.unsent);
        all.imbalance = all.imbalance.zip_with(reading.imbalance, std::ops::Add::add);
        Self { all, guests: guests.clone(), switch: Some(*switch) }
    }
}

/// The sums of `all`, with the state of any guest for which coalescing is on.
fn together(all: &Coalescing, guests: &[Reading]) -> Coalescing {
    let states = || guests.iter().map(|guest| guest.coalescing);
    let asked = states().next().unwrap_or_default().asked;
    let (is_on, is_probe) = (states().any(|it| it.is_on), states().any(|it| it.is_probe));
    Coalescing { asked, is_on, is_probe, ..*all }
}

impl Readings {
    /// The counters since `earlier`, of the same run.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = earlier.switch.unwrap_or_default();
        Self {
            all: self.all.since(&earlier.all),
            guests: self.zip_with(earlier, Reading::since),
            switch: self.switch.map(|now| now.since(&before)),
        }
    }

    /// The sum of two parts of a run. A part in which nothing ran may have no guests.
    #[must_use]
    pub fn plus(&self, later: &Self) -> Self {
        let (less, more) = if later.guests.is_empty() { (later, self) } else { (self, later) };
        let switches = [self.switch, later.switch].into_iter().flatten();
        Self {
            all: later.all.plus(&self.all),
            guests: more.zip_with(less, Reading::plus),
            switch: switches.reduce(|sum, part| sum.plus(&part)),
        }
    }

    fn zip_with(&self, other: &Self, apply: fn(&Reading, &Reading) -> Reading) -> Vec<Reading> {
        let none = Reading::default();
        let others = other.guests.iter().chain(std::iter::repeat(&none));
        self.guests.iter().zip(others).map(|(ours, theirs)| apply(ours, theirs)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(flooded: u64, frames: u64) -> Readings {
        let mut guest = Reading::default();
        guest.nic_in.frames = frames;
        let mut switch = SwitchCounters::default();
        switch.flooded = flooded;
        Readings { guests: vec![guest], switch: Some(switch), ..Readings::default() }
    }

    fn flooded_and_frames(of: &Readings) -> (u64, u64) {
        (of.switch.unwrap().flooded, of.guests[0].nic_in.frames)
    }

    #[test]
    fn parts_of_a_run_add_up_though_nothing_ran_in_one() {
        let sum = part(1, 10).plus(&part(2, 20));
        assert_eq!(flooded_and_frames(&sum), (3, 30));
        assert_eq!(flooded_and_frames(&sum.since(&part(1, 10))), (2, 20));
        // A run that is stopped while it waits for its nic ends with such a part.
        for both in [sum.plus(&Readings::default()), Readings::default().plus(&sum)] {
            assert_eq!(flooded_and_frames(&both), (3, 30));
        }
    }
}
