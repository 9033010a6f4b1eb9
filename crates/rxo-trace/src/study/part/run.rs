//! A run: a section of a series without a gap, and the state at its two ends.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rxo_frame::Instant;
use rxo_wire::FlowKey;
use serde::{Deserialize, Serialize};

use super::super::Study;
use super::super::clock::Clock;
use super::super::flows::{MAX_FLOWS, PlainAck, wire_key};
use super::super::lane::Group;
use super::super::point::Point;
use super::{Span, Sums};
use crate::report::Protocol;

/// A section of a series without a gap, and the state at its two ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(super) span: Span,
    /// The state at the ends of the run; `None` if there are no packets, or if the run has no neighbours.
    pub(super) ends: Option<Ends>,
}

/// The state at the ends of a run, which is needed to join the run with its neighbours. Times are on the run's
/// own clock, relative to the ends of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ends {
    pub(super) inner: Core,
    /// The first and the last packet of each TCP flow, if these packets are plain ACKs.
    #[serde(with = "saved_ends")]
    pub(super) flows: FlowEnds,
}

/// The state at the ends of a run, without the state of its flows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Core {
    /// The time of the run's first packet in nanoseconds, as in its record.
    pub(super) first_at_ns: u64,
    /// The state of the clock at the run's last packet.
    pub(super) clock: Clock,
    /// The time from the first packet to the last, in nanoseconds.
    pub(super) span_ns: u64,
    /// The time from the beginning of the run to the first packet that the filter accepted, and from the last such
    /// packet to the end of the run, in nanoseconds; `None` if the filter accepted none.
    pub(super) accepted_ns: Option<(u64, u64)>,
    /// The state at the ends of the run of each interface and poll rule, in order.
    pub(super) lanes: Vec<LaneEnds>,
    /// For each point, the maximum error of its counts in packets, if other packets arrived shortly before the run.
    pub(super) error_bounds: Vec<u64>,
}

/// The state at the ends of a run of one interface under one poll rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct LaneEnds {
    pub(super) interface: u64,
    /// The index of the first point with this poll rule.
    pub(super) point: u32,
    /// The time from the beginning of the run to the first packet of the interface, in nanoseconds.
    pub(super) first_ns: u64,
    /// The time from the end of the run to the end of the last poll, in nanoseconds; negative if the poll ended
    /// before the end of the run.
    pub(super) ended_ns: i64,
}

impl Run {
    pub(super) fn is_complete(&self) -> bool {
        self.span.is_whole()
    }

    /// Returns `true` if the run `next`, which is later in order, contains packets of this run.
    pub(super) fn overlaps(&self, next: &Self) -> bool {
        self.span.series == next.span.series && self.span.to > next.span.from
    }

    /// Returns `true` if the contents of the run, which was read from a saved part with `points` points, are
    /// consistent, and no count exceeds `most`.
    pub(super) fn is_valid(&self, points: usize, most: u64) -> bool {
        let is_sound = |Ends { inner, flows }: &Ends| {
            inner.error_bounds.len() == points
                && inner.error_bounds.iter().all(|error_bound| *error_bound <= most)
                && flows.len() <= MAX_FLOWS
        };
        self.span.from < self.span.to && self.ends.as_ref().is_none_or(is_sound)
    }

    /// Drops the state at the ends if the run cannot get a neighbour any more.
    pub(super) fn close(&mut self) {
        if self.is_complete() {
            self.ends = None;
        }
    }

    /// Returns `true` if the run `next` begins where this run ends.
    pub(super) fn is_before(&self, next: &Self) -> bool {
        let (mine, its) = (&self.span, &next.span);
        mine.series == its.series && mine.to == its.from && !mine.is_last
    }

    /// Appends the run `next`, and adds to `sums` everything that spans the cut between the two runs.
    pub(super) fn join(&mut self, next: Self, points: &[Point], sums: &mut Sums) {
        self.span.to = next.span.to;
        self.span.is_last = next.span.is_last;
        let is_file = next.span.from.1 == 0;
        self.ends = match (self.ends.take(), next.ends) {
            (Some(mine), Some(its)) => Some(mine.join(its, is_file, points, sums)),
            (mine, its) => mine.or(its),
        };
    }
}

impl Ends {
    /// Returns this end state joined with that of the next run, which begins with a file if `is_file`. Adds to
    /// `sums` everything that spans the cut.
    fn join(self, next: Self, is_file: bool, points: &[Point], sums: &mut Sums) -> Self {
        let first_at = Instant::from_nanos(next.inner.first_at_ns);
        let clock = self.inner.clock;
        // Captures of different times are independent: everything was delivered between them.
        let gap_ns = if is_file && clock.is_far(first_at) {
            0
        } else {
            let gap_ns = clock.gap_ns(first_at);
            sums.count.steps_back += u64::from(gap_ns.is_none());
            sums.add_error_bounds(points, gap_ns.unwrap_or_default(), &next.inner.error_bounds);
            gap_ns.unwrap_or_default()
        };
        if let (Some((_, before_ns)), Some((after_ns, _))) =
            (self.inner.accepted_ns, next.inner.accepted_ns)
        {
            let between_ns = before_ns.saturating_add(gap_ns).saturating_add(after_ns);
            sums.count.duration_ns = sums.count.duration_ns.saturating_add(between_ns);
            sums.count.gap(between_ns);
        }
        let inner = self.inner.join(next.inner, gap_ns, points, sums);
        Self { inner, flows: join_flows(self.flows, next.flows, sums) }
    }
}

impl Core {
    fn join(self, next: Self, gap_ns: u64, points: &[Point], sums: &mut Sums) -> Self {
        let before_ns = self.span_ns.saturating_add(gap_ns);
        let after_ns = next.span_ns.saturating_add(gap_ns);
        let accepted_ns = match (self.accepted_ns, next.accepted_ns) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (Some((first, last)), None) => Some((first, last.saturating_add(after_ns))),
            (None, its) => its.map(|(first, last)| (first.saturating_add(before_ns), last)),
        };
        let mut lanes: Vec<LaneEnds> = next
            .lanes
            .iter()
            .map(|lane| LaneEnds { first_ns: lane.first_ns.saturating_add(before_ns), ..*lane })
            .collect();
        for mine in self.lanes {
            match lanes.iter_mut().find(|lane| lane.is_of(&mine)) {
                Some(lane) => {
                    let first_ns = lane.first_ns.saturating_sub(before_ns).saturating_add(gap_ns);
                    let pause_ns = i128::from(first_ns) - i128::from(mine.ended_ns);
                    let pause_ns = u64::try_from(pause_ns.max(0)).unwrap_or(u64::MAX);
                    sums.pause(points, mine.point as usize, pause_ns);
                    lane.first_ns = mine.first_ns;
                }
                None => lanes.push(LaneEnds {
                    ended_ns: mine.ended_ns.saturating_sub_unsigned(after_ns),
                    ..mine
                }),
            }
        }
        lanes.sort_unstable();
        Self {
            first_at_ns: self.first_at_ns,
            clock: next.clock,
            span_ns: before_ns.saturating_add(next.span_ns),
            accepted_ns,
            lanes,
            error_bounds: self.error_bounds,
        }
    }
}

impl LaneEnds {
    const fn is_of(&self, other: &Self) -> bool {
        self.interface == other.interface && self.point == other.point
    }
}

type FlowEnds = HashMap<FlowKey, (Option<PlainAck>, Option<PlainAck>)>;

/// The ends of flows in a saved part: a list in the order of the keys.
mod saved_ends {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, FlowEnds, FlowKey, PlainAck, Serialize, wire_key};

    #[derive(Serialize, Deserialize)]
    struct Saved(#[serde(with = "wire_key")] FlowKey, Option<PlainAck>, Option<PlainAck>);

    pub(super) fn serialize<S: Serializer>(flows: &FlowEnds, to: S) -> Result<S::Ok, S::Error> {
        let flows = flows.iter().map(|(key, (first, last))| Saved(*key, *first, *last));
        let mut flows: Vec<Saved> = flows.collect();
        flows.sort_by_cached_key(|flow| flow.0.to_bytes());
        flows.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<FlowEnds, D::Error> {
        let flows = Vec::<Saved>::deserialize(from)?;
        Ok(flows.into_iter().map(|Saved(key, first, last)| (key, (first, last))).collect())
    }
}

/// Joins the ends of flows. Counts the ACKs that could be aggregated across the cut.
fn join_flows(mut earlier: FlowEnds, mut later: FlowEnds, sums: &mut Sums) -> FlowEnds {
    let mut meet = |last: Option<PlainAck>, first: Option<PlainAck>| {
        let follows = last.zip(first).is_some_and(|(last, first)| last.is_followed_by(first));
        sums.count.aggregatable_pure_acks += u64::from(follows);
    };
    if earlier.len() >= later.len() {
        for (key, (first, last)) in later {
            match earlier.entry(key) {
                Entry::Occupied(mut mine) => {
                    meet(mine.get().1, first);
                    mine.get_mut().1 = last;
                }
                Entry::Vacant(place) => _ = place.insert((first, last)),
            }
        }
        return earlier;
    }
    for (key, (first, last)) in earlier {
        match later.entry(key) {
            Entry::Occupied(mut its) => {
                meet(last, its.get().0);
                its.get_mut().0 = first;
            }
            Entry::Vacant(place) => _ = place.insert((first, last)),
        }
    }
    later
}

impl Study {
    /// Returns the state at the ends of the run; `None` if there were no packets. All packets must have been
    /// delivered before.
    pub(super) fn ends(&self) -> Option<Ends> {
        let first_at = self.first_at?;
        let end = self.clock.now();
        let accepted_ns =
            self.accepted.map(|(first, last)| (first.nanos_since(first_at), end.nanos_since(last)));
        let lanes = self.lanes.named().flat_map(|(interface, lane)| {
            lane.groups.iter().filter_map(move |group| {
                let (first, ended) = group.ends();
                let ended_ns = i128::from(ended?.as_nanos()) - i128::from(end.as_nanos());
                Some(LaneEnds {
                    interface,
                    point: group.tallies().next()?.point as u32,
                    first_ns: first?.nanos_since(first_at),
                    ended_ns: i64::try_from(ended_ns).unwrap_or(i64::MAX),
                })
            })
        });
        let mut lanes: Vec<LaneEnds> = lanes.collect();
        lanes.sort_unstable();
        let mut error_bounds = vec![0_u64; self.points.all.len()];
        let groups = self.lanes.iter().flat_map(|lane| &lane.groups);
        for tally in groups.flat_map(Group::tallies) {
            error_bounds[tally.point] += tally.error_bound;
        }
        let flows = self.chosen.flows.iter().filter(|flow| flow.protocol == Protocol::Tcp);
        let flows = flows.map(|flow| (flow.key, (flow.first_ack(), flow.last_ack()))).collect();
        let inner = Core {
            first_at_ns: first_at.as_nanos(),
            clock: self.clock,
            span_ns: end.nanos_since(first_at),
            accepted_ns,
            lanes,
            error_bounds,
        };
        Some(Ends { inner, flows })
    }
}
