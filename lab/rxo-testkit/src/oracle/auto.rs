//! A slow reference for adaptive hold: it keeps the whole history of every group, and derives each decision
//! from all of it.

use std::collections::BTreeMap;

use rxo_frame::{Duration, Instant};

use super::{Group, Oracle};

/// The events at the ends of polls.
#[derive(Default)]
pub(super) struct Patience {
    ends: Vec<Instant>,
    /// Sizes of each group at the end of each poll, by the number of the group's first frame.
    sizes: BTreeMap<usize, Vec<u64>>,
}

impl Oracle<'_> {
    pub(super) fn end_of_poll_by_load(&mut self, budget: Duration, polls: u32) {
        self.patience.ends.push(self.now);
        for group in &self.held {
            self.patience.sizes.entry(group[0]).or_default().push(group.len() as u64);
        }
        match self.load {
            None => self.flush_all("end_of_poll"),
            Some(load) if load.unread == 0 => self.flush_all("receiver_idle"),
            Some(_) => {
                for group in std::mem::take(&mut self.held) {
                    match self.impatience(&group, budget, polls) {
                        Some(reason) => self.flush(group, reason),
                        None => self.held.push(group),
                    }
                }
            }
        }
    }

    /// Returns the reason why a group is flushed; `None` if it stays held.
    fn impatience(&self, group: &Group, budget: Duration, polls: u32) -> Option<&'static str> {
        let sizes = &self.patience.sizes[&group[0]];
        let deadline = self.frames[group[0]].arrived_at + budget;
        match group.len() {
            1 => Some("lone_segment"),
            20.. => Some("enough_segments"),
            _ if sizes.len() >= polls as usize => Some("poll_limit"),
            _ if self.patience.next_poll(budget).max(self.now) >= deadline => Some("hold_budget"),
            _ if share(sizes) < 256 => Some("little_gain"),
            _ => None,
        }
    }
}

impl Patience {
    /// Returns the expected time of the next poll: the last one plus the smoothed gap. Each gap weighs a
    /// quarter and counts at most the budget; earlier gaps count as the budget.
    fn next_poll(&self, budget: Duration) -> Instant {
        let most = budget.as_nanos() as u64;
        let gaps = self.ends.windows(2).map(|pair| pair[1].since(pair[0]).as_nanos() as u64);
        let smooth = |old: u64, gap: u64| (old * 3 + gap.min(most)) / 4;
        let gap = gaps.fold(most, smooth);
        self.ends.last().copied().unwrap_or_default() + Duration::from_nanos(gap)
    }
}

/// Returns the segments per poll in units of 1/256: the mean of the last poll and of the average before it.
fn share(sizes: &[u64]) -> u64 {
    let gains = sizes.windows(2).map(|pair| pair[1] - pair[0]);
    gains.fold(sizes[0] * 256, |old, gain| old / 2 + gain * 256 / 2)
}
