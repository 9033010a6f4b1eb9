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
//! full rate; samples become rows, and rows become [`figures`] and [`verdict`]s that depend only on the
//! rows.

mod figures;
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
use rxo_demo::turns::Turns;
use serde::Serialize;

pub(crate) use self::plan::{PARTS, Plan};
use crate::runner::{Experiment, Outcome};

/// The results of both experiments.
#[derive(Debug, Serialize)]
struct Measured {
    split: Vec<split::Row>,
    keep: Vec<keep::Row>,
    /// The largest `keep_every` that harms no sender; `None` if there is none.
    keep_every: Option<u16>,
    rate_mbit_per_s: u64,
}

impl Experiment for Plan {
    fn steps(&self) -> Result<usize> {
        Ok(self.effort.rounds * (split::cases(self).len() + keep::cases(self).len()))
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome> {
        let (split, keep) = (split::measured(self, turns)?, keep::measured(self, turns)?);
        let claims = verdict::of_split(&split).into_iter().chain(verdict::of_keep(&keep));
        let (claims, facts) = (claims.collect(), self.facts(&split, &keep));
        let figures = figures::all(&split, &keep);
        let (keep_every, rate_mbit_per_s) = (keep::choice(&keep), self.bytes_per_s / 125_000);
        let measured = Measured { split, keep, keep_every, rate_mbit_per_s };
        Ok(Outcome::new(figures, &measured)?.claims(claims).facts(facts))
    }
}
