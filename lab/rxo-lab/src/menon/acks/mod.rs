//! `rxo-lab menon acks`: what coalescing does to those who count acknowledgements
//! (sections 3.4 and 4).
//!
//! Two experiments in private networks, with delay, loss and the link's rate from the project's own
//! middleware:
//!
//! * [`split`]: a sender (Linux Reno, CUBIC, BBR, or our own that counts ACKs) and a Linux receiver
//!   behind rxo that coalesces data: not at all, and with the ACKs that follow from it.
//! * [`keep`]: a Linux sender behind rxo that aggregates the pure ACKs on their way to it: how many
//!   it may swallow.
//!
//! The flags become a [`plan`]; [`transfer`] runs and watches one connection, [`growth`] says when it
//! was at full rate; samples become rows, and these the [`findings`] with [`verdict`]s that depend on
//! nothing but the rows.

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
