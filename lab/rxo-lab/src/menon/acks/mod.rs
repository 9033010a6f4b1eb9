//! `rxo-lab menon acks`: measures the effect of coalescing on senders that count ACKs (sections 3.4 and 4).
//!
//! Two experiments in private networks; the project's middleware adds delay and loss and limits the rate:
//!
//! * [`split`]: a sender (Linux Reno, CUBIC, BBR, or our own that counts ACKs) and a Linux receiver behind
//!   rxo, which coalesces no data, coalesces it, or also splits the receiver's ACKs.
//! * [`keep`]: a Linux sender behind rxo, which aggregates the pure ACKs to that sender, with different
//!   limits.
//!
//! The flags become a [`plan`]. [`transfer`] runs and observes one connection, [`growth`] finds the time of
//! full rate; samples become rows, and rows become [`findings`] with [`verdict`]s that depend only on the
//! rows.

mod findings;
mod growth;
mod keep;
mod network;
mod plan;
mod sample;
mod sender;
mod split;
mod transfer;
mod verdict;

use anyhow::Result;
use rxo_demo::experiment::{Experiment, Output};
use rxo_demo::turns::Turns;

use self::findings::Found;
pub(crate) use self::plan::Plan;

impl Experiment for Plan {
    type Findings = Found;

    fn steps(&self) -> Result<usize> {
        Ok(self.effort.rounds * (split::cases(self).len() + keep::cases(self).len()))
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Found> {
        Ok(Found::new(self, split::measured(self, turns)?, keep::measured(self, turns)?))
    }

    fn notes(&self, found: &Found) -> Vec<String> {
        found.notes(self)
    }

    fn output(&self) -> &Output {
        &self.output
    }
}
