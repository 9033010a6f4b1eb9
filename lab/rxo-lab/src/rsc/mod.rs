//! `rxo-lab rsc`: Makineni et al., "Receive Side Coalescing for Accelerating TCP/IP Processing" (2006),
//! repeated with real Linux senders.
//!
//! The flags become a [`plan`]. [`senders`] make captures, or the user brings them; [`captures`] collects
//! them, [`examine`] simulates the paper's card on each, and [`amount`] draws figures 4 to 8. [`cost`]
//! measures the processor time at each [`level`], [`saving`] draws it as figures 10 and 12, and [`faster`]
//! projects it to other rates. The [`findings`] hold all [`figure`](super::figure)s, with verdicts on the
//! paper's [`statement`](crate::statement)s.

mod amount;
mod captures;
mod ceiling;
mod condition;
mod cost;
mod examine;
mod faster;
mod findings;
mod interleave;
mod level;
mod plan;
mod saving;
mod senders;

use anyhow::Result;
use rxo_demo::experiment::{Experiment, Output};
use rxo_demo::turns::Turns;

use self::findings::Found;
use self::plan::CapturePlan;
pub(crate) use self::plan::Plan;

impl Experiment for Plan {
    type Findings = Found;

    fn steps(&self) -> Result<usize> {
        let captures = match &self.captures {
            None => 0,
            Some(CapturePlan::Lab(lab)) => lab.conditions.len(),
            Some(CapturePlan::Directory(directory)) => captures::files(directory)?.len(),
        };
        Ok(captures + self.cpu.as_ref().map_or(0, cost::steps))
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Found> {
        let captures = self.captures.as_ref().map(|plan| captures::examined(plan, turns));
        let captures = captures.transpose()?.unwrap_or_default();
        let costs = self.cpu.as_ref().map(|plan| cost::measured(plan, turns));
        let is_live = matches!(self.captures, Some(CapturePlan::Lab(_)));
        Ok(Found::new((captures, is_live), costs.transpose()?.unwrap_or_default()))
    }

    fn notes(&self, found: &Found) -> Vec<String> {
        found.notes(self)
    }

    fn output(&self) -> &Output {
        &self.output
    }

    fn needs_networks(&self) -> bool {
        self.cpu.is_some() || matches!(self.captures, Some(CapturePlan::Lab(_)))
    }
}
