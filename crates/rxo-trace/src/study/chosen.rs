//! What is counted for the chosen point only: its flows one by one, and its course over time.

use super::course::Steps;
use super::flows::Flows;

#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) flows: Flows,
    pub(super) course: Steps,
}

impl Chosen {
    /// Nothing yet, room for so many flows; `seed` keeps captures from aiming at one place.
    pub(super) fn new(most_flows: usize, seed: u64) -> Self {
        Self { flows: Flows::new(most_flows, seed), course: Steps::default() }
    }
}
