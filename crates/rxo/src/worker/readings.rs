//! Readings: the counters of a run, for all workers and hosts together, for each worker, and for each guest.

use super::{Coalescing, Reading};
use crate::switch::SwitchCounters;

/// The counters of a run or of an interval. A [`Reading`] of a single host can be converted to `Readings`.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// The counters of the nic, and the sums over all hosts.
    pub all: Reading,
    /// The counters of each guest; empty for `rxo run`.
    pub guests: Vec<Reading>,
    /// The counters of each worker, if several share the devices; empty for one worker. With guests these are the workers
    /// of the switch: what they send to the host are frames for guests, before coalescing.
    pub workers: Vec<Reading>,
    /// The counters of the switch between the nic and the guests; `None` without a switch.
    pub switch: Option<SwitchCounters>,
}

impl From<Reading> for Readings {
    fn from(all: Reading) -> Self {
        Self { all, ..Self::default() }
    }
}

/// Combines the state of coalescing of all guests: coalescing is on if it is on for any guest, and the counts
/// are those of `all`.
fn together(all: &Coalescing, guests: &[Reading]) -> Coalescing {
    let states = || guests.iter().map(|guest| guest.coalescing);
    let asked = states().next().unwrap_or_default().asked;
    let (is_on, is_probe) = (states().any(|it| it.is_on), states().any(|it| it.is_probe));
    Coalescing { asked, is_on, is_probe, ..*all }
}

impl Readings {
    /// Combines the counters of a run with a switch. `hubs` contains the counters of each worker of the switch: those of
    /// its queue of the nic, before the switch, and of the switch.
    pub(super) fn switched(hubs: Vec<Self>, guests: Vec<Reading>) -> Self {
        let switches = hubs.iter().filter_map(|hub| hub.switch);
        let switch = switches.reduce(|sum, of_hub| sum.plus(&of_hub));
        let Self { all: nic, workers, .. } = Self::side_by_side(hubs);
        let of_guests = guests.iter().fold(Reading::default(), |sum, guest| sum.plus(guest));
        let (mut nic_in, mut nic_out) = (nic.nic_in, nic.nic_out);
        // Drops of the queues and of the switch are added to the nic's own losses.
        nic_in.ring_drops += of_guests.nic_in.ring_drops;
        nic_out.dropped += of_guests.nic_out.dropped;
        nic_out.dropped_frames += of_guests.nic_out.dropped_frames;
        let all = Reading {
            // The threads of the switch, and those of the guests if they have any.
            cpu: nic.cpu + of_guests.cpu,
            over_budget: of_guests.over_budget,
            stalls: of_guests.stalls,
            nic_in,
            nic_out,
            host_in: of_guests.host_in,
            host_out: of_guests.host_out,
            engine: of_guests.engine,
            imbalance: of_guests.imbalance.plus(&nic.imbalance),
            coalescing: together(&of_guests.coalescing, &guests),
            split: of_guests.split,
            ..nic
        };
        Self { all, guests, switch, workers }
    }

    /// Combines the counters of workers that run at the same time, between queues of the same devices.
    /// Returns the counters of a single worker unchanged.
    pub(crate) fn side_by_side(mut parts: Vec<Self>) -> Self {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return only;
        }
        let workers: Vec<_> = parts.into_iter().map(|part| part.all).collect();
        let sum = workers.iter().fold(Reading::default(), |sum, worker| worker.plus(&sum));
        let elapsed = workers.iter().map(|worker| worker.elapsed).max().unwrap_or_default();
        let all = Reading { elapsed, coalescing: together(&sum.coalescing, &workers), ..sum };
        Self { all, workers, ..Self::default() }
    }

    /// Returns the counters since `earlier`, a reading of the same run.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = earlier.switch.unwrap_or_default();
        Self {
            all: self.all.since(&earlier.all),
            guests: zip(&self.guests, &earlier.guests, Reading::since),
            workers: zip(&self.workers, &earlier.workers, Reading::since),
            switch: self.switch.map(|now| now.since(&before)),
        }
    }

    /// Returns the sum of two parts of a run. A part in which no worker ran may have no guests and no workers.
    #[must_use]
    pub fn plus(&self, later: &Self) -> Self {
        let switches = [self.switch, later.switch].into_iter().flatten();
        Self {
            all: later.all.plus(&self.all),
            guests: sum(&self.guests, &later.guests),
            workers: sum(&self.workers, &later.workers),
            switch: switches.reduce(|sum, part| sum.plus(&part)),
        }
    }
}

/// Returns the sums of the readings of two parts of a run, one of which may be empty.
fn sum(earlier: &[Reading], later: &[Reading]) -> Vec<Reading> {
    let (less, more) = if later.is_empty() { (later, earlier) } else { (earlier, later) };
    zip(more, less, Reading::plus)
}

fn zip(
    ours: &[Reading],
    others: &[Reading],
    apply: fn(&Reading, &Reading) -> Reading,
) -> Vec<Reading> {
    let none = Reading::default();
    let others = others.iter().chain(std::iter::repeat(&none));
    ours.iter().zip(others).map(|(ours, theirs)| apply(ours, theirs)).collect()
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
        // A run that is stopped while it waits for its nic ends with an empty part.
        for both in [sum.plus(&Readings::default()), Readings::default().plus(&sum)] {
            assert_eq!(flooded_and_frames(&both), (3, 30));
        }
    }
}
