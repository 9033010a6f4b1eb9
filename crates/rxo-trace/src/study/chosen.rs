//! What is counted only for the chosen point: its flows, and its course over time.

use super::course::Steps;
use super::flows::Flows;

#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) flows: Flows,
    pub(super) course: Steps,
}

impl Chosen {
    /// Starts with no counts and room for `most_flows` flows. `seed` keeps captures from aiming at
    /// one bucket.
    pub(super) fn new(most_flows: usize, seed: u64) -> Self {
        Self { flows: Flows::new(most_flows, seed), course: Steps::default() }
    }
}
