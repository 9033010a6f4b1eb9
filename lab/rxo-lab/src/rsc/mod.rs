//! `rxo-lab rsc`: Makineni et al., "Receive Side Coalescing for Accelerating TCP/IP Processing" (2006),
//! repeated with real Linux senders.
//!
//! The flags become a [`plan`]. [`senders`] make captures, or the user brings them; [`captures`] collects
//! them, [`examine`] simulates the paper's card on each, and [`amount`] draws figures 4 to 8. [`cost`]
//! measures the processor time at each [`level`], [`saving`] draws it as figures 10 and 12, and [`faster`]
//! projects it to other rates.

mod amount;
mod captures;
mod ceiling;
mod condition;
mod cost;
mod examine;
mod faster;
mod interleave;
mod level;
mod plan;
mod saving;
mod senders;

use anyhow::Result;
use rxo_demo::turns::Turns;
use serde::Serialize;

use self::cost::Cost;
use self::examine::Examined;
use self::faster::Faster;
use self::plan::CapturePlan;
pub(crate) use self::plan::{PARTS, Plan};
use crate::runner::{Experiment, Outcome};

/// The results of all measurements.
#[derive(Debug, Serialize)]
struct Measured {
    /// The captures behind figures 4 to 8.
    captures: Vec<Examined>,
    /// The costs behind figures 10 to 12.
    costs: Vec<Cost>,
    /// The projection to other rates; `None` without enough costs.
    projection: Option<Faster>,
}

impl Experiment for Plan {
    fn steps(&self) -> Result<usize> {
        let captures = match &self.captures {
            None => 0,
            Some(CapturePlan::Lab(lab)) => lab.conditions.len(),
            Some(CapturePlan::Directory(directory)) => captures::files(directory)?.len(),
        };
        Ok(captures + self.cpu.as_ref().map_or(0, cost::steps))
    }

    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome> {
        let captures = self.captures.as_ref().map(|plan| captures::examined(plan, turns));
        let captures = captures.transpose()?.unwrap_or_default();
        let costs = self.cpu.as_ref().map(|plan| cost::measured(plan, turns));
        let costs = costs.transpose()?.unwrap_or_default();
        let projection = Faster::of(&costs);
        let figures = [amount::figures(&captures), saving::figures(&costs)].concat();
        let figures = figures.into_iter().chain(projection.as_ref().map(Faster::figure)).collect();
        let facts = self.facts(&captures, &costs, projection.is_some());
        let damage = captures.iter().filter_map(|examined| examined.damage.clone()).collect();
        let measured = Measured { captures, costs, projection };
        Ok(Outcome { missing: damage, ..Outcome::new(figures, &measured)?.facts(facts) })
    }

    fn needs_networks(&self) -> bool {
        self.cpu.is_some() || matches!(self.captures, Some(CapturePlan::Lab(_)))
    }
}
