//! The counters of a run: of all hosts together, and of each guest.

use std::ops::Add;

use super::{Coalescing, Reading};
use crate::switch::SwitchCounters;

/// The counters of a run or of an interval. Those of a host alone come [from](From) a [`Reading`].
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

/// The sums of `all`, with the state of any guest for which coalescing is on.
fn together(all: &Coalescing, guests: &[Reading]) -> Coalescing {
    let states = || guests.iter().map(|guest| guest.coalescing);
    let asked = states().next().unwrap_or_default().asked;
    let (is_on, is_probe) = (states().any(|it| it.is_on), states().any(|it| it.is_probe));
    Coalescing { asked, is_on, is_probe, ..*all }
}

impl Readings {
    /// Those of a switch between a nic and guests. `nic` has what is counted before the switch and behind it.
    pub(super) fn switched(nic: Reading, guests: Vec<Reading>, switch: SwitchCounters) -> Self {
        let of_guests = guests.iter().fold(Reading::default(), |sum, guest| sum.plus(guest));
        let (mut nic_in, mut nic_out) = (nic.nic_in, nic.nic_out);
        // What the queues and the switch drop is lost beside what the nic loses.
        nic_in.ring_drops += of_guests.nic_in.ring_drops;
        nic_out.dropped += of_guests.nic_out.dropped;
        nic_out.dropped_frames += of_guests.nic_out.dropped_frames;
        let all = Reading {
            nic_in,
            nic_out,
            host_in: of_guests.host_in,
            host_out: of_guests.host_out,
            engine: of_guests.engine,
            imbalance: of_guests.imbalance.zip_with(&nic.imbalance, Add::add),
            coalescing: together(&of_guests.coalescing, &guests),
            split: of_guests.split,
            ..nic
        };
        Self { all, guests, switch: Some(switch) }
    }

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
