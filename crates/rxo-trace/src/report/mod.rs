//! The result of a study of captures, as data.
//!
//! Text, JSON, HTML and Parquet are made from these types and nothing else, so they cannot
//! disagree. Durations are in nanoseconds, sizes in bytes, shares from 0 to 1.

mod advice;
mod course;
mod decision;
pub mod explain;
mod flow;
mod live;
mod outcome;
mod receiver;
mod traffic;
mod version;

use serde::Serialize;

pub use crate::words::utc;

use crate::projection::Projection;
use crate::sweep::SweepAxis;

pub use advice::{Advice, Choice, LinuxAdvice, Tried, TriedPoll};
pub use course::{Course, CourseStep};
pub use decision::Decision;
pub use flow::{FlowReport, Protocol};
pub use live::{HostSettings, Live, LiveRate, LiveReceiver};
pub use outcome::{Distribution, Outcome, ReasonCount};
pub use receiver::Receiver;
pub use traffic::{Checksums, Encapsulation, SenderOffload, Source, Traffic};
pub use version::Version;

/// The report of one study of captures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The version of the JSON that is made from the report.
    pub version: Version,
    /// The headline figures: the decision whether coalescing is worth it.
    pub decision: Decision,
    /// The command that made the report, as the user would type it; `None` if no command did.
    pub command: Option<String>,
    /// The captures that were studied, in order.
    pub sources: Vec<Source>,
    /// The interface that was watched live; `None` for captures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
    /// The packet filter, as the user typed it; `None` if all packets were studied.
    pub filter: Option<String>,
    /// Properties of the traffic that do not depend on the policy.
    pub traffic: Traffic,
    /// The effect of the chosen policy and poll rule.
    pub outcome: Outcome,
    /// The effects of all settings that were tried, the chosen ones first. Each combination occurs once.
    #[serde(skip)]
    pub tried: Vec<Outcome>,
    /// The traffic over time, under the chosen policy.
    pub course: Course,
    /// The flows with the most packets, in descending order, with the effect of the chosen policy.
    pub flows: Vec<FlowReport>,
    /// The results of other settings; `None` if there was no sweep.
    pub sweep: Option<Sweep>,
    /// The smallest settings that come close to the best; `None` if none were tried.
    pub advice: Option<Advice>,
    /// The savings of coalescing at other rates; `None` if no costs were given.
    pub projection: Option<Projection>,
    /// The reason why the report is incomplete (a damaged file, a signal); `None` if it is complete.
    pub partial: Option<String>,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
}

/// The outcomes of other values of one setting, or of two as a grid, from a single pass over the captures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sweep {
    /// The one or two settings with their values, as the user would type them.
    pub axes: Vec<SweepAxis>,
    /// The outcome of every combination of values. The last axis varies fastest.
    pub outcomes: Vec<Outcome>,
}

impl Sweep {
    /// Returns the index on each axis of the values of the outcome at index `place`.
    pub(crate) fn places_at(&self, mut place: usize) -> Vec<usize> {
        let mut places = vec![0; self.axes.len()];
        for (axis, index) in self.axes.iter().zip(&mut places).rev() {
            let count = axis.values.len().max(1);
            *index = place % count;
            place /= count;
        }
        places
    }
}
