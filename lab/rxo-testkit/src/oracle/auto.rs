//! Adaptive hold, once more and slowly: the whole history of every group is kept, and each decision is
//! made from all of it.

use std::collections::BTreeMap;

use rxo_frame::{Duration, Instant};

use super::{Group, Oracle};

/// Everything that happened at the ends of polls.
#[derive(Default)]
pub(super) struct Patience {
    ends: Vec<Instant>,
    /// By the number of a group's first frame, how many frames it had at the end of each poll.
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

    /// Returns the reason why a group leaves; `None` if it stays.
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
    /// When the next poll is expected: after the smoothed gap, where each gap weighs a quarter, counts at
    /// most the budget, and the gaps before the first were all as long as that.
    fn next_poll(&self, budget: Duration) -> Instant {
        let most = budget.as_nanos() as u64;
        let gaps = self.ends.windows(2).map(|pair| pair[1].since(pair[0]).as_nanos() as u64);
        let smooth = |old: u64, gap: u64| (old * 3 + gap.min(most)) / 4;
        let gap = gaps.fold(most, smooth);
        self.ends.last().copied().unwrap_or_default() + Duration::from_nanos(gap)
    }
}

/// Returns the number of 256ths of a segment a poll brings: the mean of the last poll and all before it.
fn share(sizes: &[u64]) -> u64 {
    let gains = sizes.windows(2).map(|pair| pair[1] - pair[0]);
    gains.fold(sizes[0] * 256, |old, gain| old / 2 + gain * 256 / 2)
}
