//! The sums of a part: the counts that are simply added when parts are merged.

use std::collections::BTreeSet;

use rxo_coalesce::{BypassReason, FlushReason, Histogram};
use serde::{Deserialize, Serialize};

use super::super::Study;
use super::super::count::Count;
use super::super::course::Steps;
use super::super::flows::{Flows, MAX_FLOWS};
use super::super::lane::PollFigures;
use super::super::point::{Aggregates, Point, Tally};
use super::{Captures, Mark, Numbering, Span, saved_histogram};
use crate::report::Source;

/// The counts of a part.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    pub(in super::super) count: Count,
    pub(in super::super) points: Vec<PointSums>,
    pub(in super::super) flows: Flows,
    pub(in super::super) course: Steps,
    /// The time of the earliest packet, in nanoseconds since 1970; `u64::MAX` if there are no packets.
    pub(in super::super) started_at_ns: u64,
    pub(in super::super) captures: Captures,
    /// The reasons why reading stopped early.
    pub(in super::super) partial: BTreeSet<String>,
}

/// The counts of one point's engines on all interfaces. A saved part contains the fields in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PointSums {
    pub(in super::super) frames: u64,
    pub(in super::super) deliveries: u64,
    pub(in super::super) aggregates: u64,
    pub(in super::super) aggregated_segments: u64,
    pub(in super::super) singles: u64,
    /// The number of polls that began early, because the ring of a simulated host was full.
    pub(in super::super) overruns: u64,
    /// The number of packets by which `eliminated` may be wrong.
    pub(in super::super) error_bound: u64,
    /// The number of TCP segments inside tunnels that were coalesced or could have been coalesced.
    pub(in super::super) tunnelled: u64,
    pub(in super::super) tunnelled_deliveries: u64,
    /// The number of bypasses for each reason, in the order of the reasons.
    pub(in super::super) bypassed: Vec<u64>,
    pub(in super::super) flushed: Vec<u64>,
    #[serde(with = "saved_histogram")]
    pub(in super::super) hold_ns: Histogram,
    pub(in super::super) sizes: Aggregates,
    pub(in super::super) polls: PollFigures,
}

impl PointSums {
    /// Adds the counts of an engine, and of its polls.
    fn count(&mut self, tally: Tally, (polls, overruns): (&PollFigures, u64)) {
        let counters = tally.counters;
        self.add(&Self {
            frames: counters.frames,
            deliveries: counters.deliveries,
            aggregates: counters.aggregates,
            aggregated_segments: counters.aggregated_segments,
            singles: counters.singles,
            overruns,
            error_bound: 0,
            tunnelled: counters.tunnelled,
            tunnelled_deliveries: counters.tunnelled_deliveries,
            bypassed: BypassReason::ALL.iter().map(|reason| counters.bypassed(*reason)).collect(),
            flushed: FlushReason::ALL.iter().map(|reason| counters.flushed(*reason)).collect(),
            hold_ns: counters.hold_ns,
            sizes: tally.aggregates,
            polls: polls.clone(),
        });
    }

    fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.frames, other.frames),
            (&mut self.deliveries, other.deliveries),
            (&mut self.aggregates, other.aggregates),
            (&mut self.aggregated_segments, other.aggregated_segments),
            (&mut self.singles, other.singles),
            (&mut self.overruns, other.overruns),
            (&mut self.tunnelled, other.tunnelled),
            (&mut self.tunnelled_deliveries, other.tunnelled_deliveries),
            (&mut self.error_bound, other.error_bound),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        add_all(&mut self.bypassed, &other.bypassed);
        add_all(&mut self.flushed, &other.flushed);
        self.hold_ns.add(&other.hold_ns);
        self.sizes.add(&other.sizes);
        self.polls.add(&other.polls);
    }

    /// Returns `true` if the counts, which were read from a saved part, are consistent, and no count exceeds
    /// `most`.
    pub(super) fn is_valid(&self, most: u64) -> bool {
        // Without interfaces there was no engine, and nothing was counted by reason.
        let fits = |counts: &[u64], reasons| counts.is_empty() || counts.len() == reasons;
        let Self { frames, deliveries, aggregates, aggregated_segments, singles, .. } = *self;
        let engine = [frames, deliveries, aggregates, aggregated_segments, singles];
        let others = [self.overruns, self.error_bound, self.tunnelled, self.tunnelled_deliveries];
        let reasons = self.bypassed.iter().chain(&self.flushed);
        fits(&self.bypassed, BypassReason::ALL.len())
            && fits(&self.flushed, FlushReason::ALL.len())
            && engine.iter().chain(&others).chain(reasons).all(|count| *count <= most)
    }
}

fn add_all(mine: &mut Vec<u64>, theirs: &[u64]) {
    mine.resize(mine.len().max(theirs.len()), 0);
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine = mine.saturating_add(*theirs);
    }
}

impl Sums {
    /// Returns sums of zero for this number of points.
    pub(super) fn empty(points: usize) -> Self {
        Self {
            count: Count::default(),
            points: vec![PointSums::default(); points],
            flows: Flows::new(MAX_FLOWS),
            course: Steps::default(),
            started_at_ns: u64::MAX,
            captures: Captures::default(),
            partial: BTreeSet::new(),
        }
    }

    /// Moves the counts and the flows out of a study that has delivered all packets.
    pub(super) fn of(study: &mut Study, span: Option<&Span>, partial: Option<String>) -> Self {
        let mut points = vec![PointSums::default(); study.points.all.len()];
        for group in study.lanes.iter().flat_map(|lane| &lane.groups) {
            for tally in group.tallies() {
                points[tally.point].count(tally, group.figures());
            }
        }
        let mut flows = core::mem::replace(&mut study.chosen.flows, Flows::new(0));
        flows.iter_mut().for_each(super::super::flows::Flow::forget_ends);
        let mut count = study.count;
        if let Some(runs) = &study.chosen.runs {
            runs.put(&mut count);
        }
        count.steps_back = study.clock.steps_back();
        count.clock_sets = study.clock.sets();
        count.duration_ns = study.accepted.map_or(0, |(first, last)| last.nanos_since(first));
        let mut sums = Self {
            count,
            points,
            flows,
            course: study.chosen.course.clone(),
            started_at_ns: study.started_at_ns,
            captures: Captures::default(),
            partial: partial.into_iter().collect(),
        };
        let series = span.map_or_else(|| sums.mark_of(&study.sources), |span| span.series);
        let first = span.map_or(0, |span| span.from.0);
        let places = (first..).map(|file| (series, file));
        sums.captures = places.zip(study.sources.iter().cloned()).collect();
        sums
    }

    /// Returns the number of the series to which the captures belong.
    pub(super) fn mark(&self) -> u64 {
        self.captures.iter().next().map_or(0, |((series, _), _)| *series)
    }

    fn mark_of(&self, sources: &[Source]) -> u64 {
        let mut mark = Mark::default();
        for source in sources {
            mark.add(source.name.as_bytes());
            mark.add(&source.packets.to_le_bytes());
            mark.add(&source.started_at_ns.to_le_bytes());
            mark.add(&source.duration_ns.to_le_bytes());
        }
        mark.0
    }

    /// Adds the counts of another part.
    pub(super) fn add(&mut self, other: Self) {
        self.count = self.count.plus(&other.count);
        for (mine, theirs) in self.points.iter_mut().zip(&other.points) {
            mine.add(theirs);
        }
        let numbers = self.captures.add(other.captures);
        let numbering = Numbering { numbers: &numbers, captures: &self.captures };
        for flow in other.flows.iter() {
            if !self.flows.add(flow, &numbering) {
                let untracked = &mut self.count.untracked_packets;
                *untracked = untracked.saturating_add(flow.packets);
            }
        }
        self.course.add(&other.course);
        self.started_at_ns = self.started_at_ns.min(other.started_at_ns);
        self.partial.extend(other.partial);
    }

    /// Counts a pause across a cut for every point with the same poll rule as the point `first`.
    pub(super) fn pause(&mut self, points: &[Point], first: usize, pause_ns: u64) {
        let Some(rule) = points.get(first).map(|point| point.poll) else { return };
        for (point, sums) in points.iter().zip(&mut self.points) {
            if point.poll == rule {
                sums.polls.pause_ns.record(pause_ns);
            }
        }
    }

    /// Adds the error bounds of the later part of a cut capture to the points that the cut may affect. These
    /// are the points whose results still depend on packets before the pause of `gap_ns` nanoseconds at the
    /// cut.
    pub(super) fn add_error_bounds(&mut self, points: &[Point], gap_ns: u64, error_bounds: &[u64]) {
        let gap = rxo_frame::Duration::from_nanos(gap_ns);
        for ((point, sums), error_bound) in points.iter().zip(&mut self.points).zip(error_bounds) {
            if point.reach().is_none_or(|reach| gap <= reach) {
                sums.error_bound = sums.error_bound.saturating_add(*error_bound);
            }
        }
    }
}
