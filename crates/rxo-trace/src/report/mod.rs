//! What a study of captures found, as data.
//!
//! Everything that shows results (text, JSON, HTML, Parquet) reads these and nothing else, so no
//! two of them can disagree. Durations are in nanoseconds, sizes in bytes, shares from 0 to 1.

mod advice;
mod course;
mod decision;
pub mod explain;
mod flow;
mod outcome;
mod traffic;

use serde::Serialize;

pub use crate::words::utc;

use crate::projection::Projection;
use crate::sweep::SweepAxis;

pub use advice::{Advice, Choice, LinuxAdvice, Tried, TriedPoll};
pub use course::{Course, CourseStep};
pub use decision::Decision;
pub use flow::FlowReport;
pub use outcome::{Distribution, Outcome, ReasonCount};
pub use traffic::{Checksums, SenderOffload, Source, Traffic};

/// All that one run over one or more captures found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// What it would be worth: the figures to be passed on.
    pub decision: Decision,
    /// The command that made it, as the user would type it; `None` when no command did.
    pub command: Option<String>,
    /// The captures read, in order.
    pub sources: Vec<Source>,
    /// Which packets were looked at, as the user typed it; `None` for all.
    pub filter: Option<String>,
    /// What the traffic is, whatever the policy.
    pub traffic: Traffic,
    /// What the chosen policy does to it.
    pub outcome: Outcome,
    /// The traffic over time, under the chosen policy.
    pub course: Course,
    /// The flows with most packets, most first, under the chosen policy.
    pub flows: Vec<FlowReport>,
    /// What other settings would do; `None` when no sweep was asked for.
    pub sweep: Option<Sweep>,
    /// The smallest settings that come close to the best; `None` when none were tried.
    pub advice: Option<Advice>,
    /// What it would save at other rates; `None` when no costs were given.
    pub projection: Option<Projection>,
    /// Why this is not everything (a damaged file, a signal); `None` when it is.
    pub partial: Option<String>,
    /// What the user should know and do, one sentence each.
    pub notes: Vec<String>,
}

/// Outcomes over one setting, or two as a grid, all from one pass over the captures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sweep {
    /// One or two settings with their values, as text as the user would type them.
    pub axes: Vec<Axis>,
    /// One outcome for every combination, the last axis varying fastest.
    pub outcomes: Vec<Outcome>,
}

/// One setting of a sweep.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Axis {
    /// The setting's name, such as `flows`.
    pub key: String,
    /// Its values in the order given.
    pub values: Vec<String>,
}

impl From<&SweepAxis> for Axis {
    fn from(axis: &SweepAxis) -> Self {
        Self { key: axis.key.clone(), values: axis.values.clone() }
    }
}
