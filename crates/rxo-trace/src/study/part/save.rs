//! Saves parts as bytes, to be stored or sent to another machine.
//!
//! ```text
//!  "rxo-part"   version (u16)   names (u64)   fields (postcard 1)   CRC-32 of all before (u32)
//! ```
//!
//! Numbers outside the fields are little-endian. `names` is a hash of the names of all counts and reasons: it
//! changes when one is added, and then no part is misread. Equal parts have equal bytes.

use core::fmt;

use rxo_coalesce::{BypassReason, FlushReason, Histogram};
use rxo_wire::FlowKey;
use serde::{Deserialize, Serialize};

use super::super::count::Count;
use super::super::course::Steps;
use super::super::flows::{Flow, MAX_FLOWS, PlainAck, wire_key};
use super::super::lane::PollFigures;
use super::super::point::Aggregates;
use super::captures::{Numbering, Place};
use super::run::Core;
use super::{Ends, Mark, Part, PointSums, Recipe, Run, Span, Sums};
use crate::report::Source;

const VERSION: u16 = 6;
const HEAD_BYTES: usize = Part::MAGIC.len() + 2 + 8;
const CRC_BYTES: usize = 4;
/// Maximum count that is accepted in a saved part, so that many counts can be added without overflow.
const MOST: u64 = 1 << 56;

/// The reason why bytes cannot be read as a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartError {
    /// The bytes do not begin like a saved part.
    Foreign,
    /// The bytes were written by a version of rxo that has other counts.
    Version,
    /// The bytes of the part are truncated or were changed.
    Damaged,
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "it is not a part of a study",
            Self::Version => "it is a part made by another version of rxo; make it again",
            Self::Damaged => "it is a part, but truncated or damaged",
        })
    }
}

impl core::error::Error for PartError {}

impl Part {
    /// The first bytes of every saved part.
    pub const MAGIC: &[u8; 8] = b"rxo-part";

    /// Returns `true` if `bytes` begin like a saved part.
    #[must_use]
    pub fn is_at(bytes: &[u8]) -> bool {
        bytes.starts_with(Part::MAGIC)
    }

    /// Returns the part as bytes. Equal parts give equal bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Part::MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(names().to_le_bytes());
        let sums = &self.sums;
        let mut flows: Vec<&Flow> = sums.flows.iter().collect();
        flows.sort_by_cached_key(|flow| flow.identity());
        let ranks = sums.captures.ranks();
        let rank = |file: u32| ranks.get(file as usize).copied().unwrap_or(file);
        let fields = Written {
            recipe: &self.recipe,
            count: &sums.count,
            points: sums.points.iter().map(SavedPoint::of).collect(),
            flows: flows.iter().map(|flow| (*flow, flow.files.map(rank))).collect(),
            course: &sums.course,
            started_at_ns: sums.started_at_ns,
            captures: sums.captures.iter().collect(),
            partial: sums.partial.iter().collect(),
            runs: self.runs.iter().map(SavedRun::of).collect(),
        };
        // This fails only for maps of unknown length, and there are none.
        let fields = postcard::to_allocvec(&fields).unwrap_or_default();
        bytes.extend(fields);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    /// Reads a part from the bytes that [`Part::to_bytes`] returned. Allocates at most a few times their
    /// length.
    ///
    /// # Errors
    /// [`PartError`] if the bytes are not a part that this version can read.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PartError> {
        if !Self::is_at(bytes) {
            return Err(PartError::Foreign);
        }
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or(PartError::Damaged)?;
        let version = [&VERSION.to_le_bytes()[..], &names().to_le_bytes()].concat();
        if head.get(Part::MAGIC.len()..) != Some(&version) {
            return Err(PartError::Version);
        }
        let at = rest.len().checked_sub(CRC_BYTES).ok_or(PartError::Damaged)?;
        let (fields, crc) = rest.split_at(at);
        let whole = bytes.get(..HEAD_BYTES + at).unwrap_or_default();
        if crc32fast::hash(whole).to_le_bytes() != crc {
            return Err(PartError::Damaged);
        }
        Self::from_fields(fields)
    }

    /// Reads a part from its encoded fields: the bytes of a saved part without its head and its CRC, so changed bytes
    /// may go unnoticed.
    ///
    /// # Errors
    /// [`PartError::Damaged`] if the fields are not those of a valid part.
    pub fn from_fields(fields: &[u8]) -> Result<Self, PartError> {
        let (saved, rest) =
            postcard::take_from_bytes::<Read>(fields).map_err(|_| PartError::Damaged)?;
        let part = rest.is_empty().then(|| saved.part()).flatten();
        part.ok_or(PartError::Damaged)
    }
}

/// Returns a hash of the names of all counts and reasons.
fn names() -> u64 {
    let mut mark = Mark::default();
    let counts = Count::NAMES.iter().copied();
    let bypassed = BypassReason::ALL.iter().map(|reason| reason.name());
    let flushed = FlushReason::ALL.iter().map(|reason| reason.name());
    for name in counts.chain(bypassed).chain(flushed) {
        mark.add(name.as_bytes());
    }
    mark.0
}

#[derive(Serialize)]
struct Written<'a> {
    recipe: &'a Recipe,
    count: &'a Count,
    points: Vec<SavedPoint>,
    /// The flows, each with the ranks of its first and last capture.
    flows: Vec<(&'a Flow, [u32; 2])>,
    course: &'a Steps,
    started_at_ns: u64,
    captures: Vec<(&'a Place, &'a Source)>,
    partial: Vec<&'a String>,
    runs: Vec<SavedRun>,
}

#[derive(Deserialize)]
struct Read {
    recipe: Recipe,
    count: Count,
    points: Vec<SavedPoint>,
    flows: Vec<(Flow, [u32; 2])>,
    course: Steps,
    started_at_ns: u64,
    captures: Vec<(Place, Source)>,
    partial: Vec<String>,
    runs: Vec<SavedRun>,
}

impl Read {
    fn part(self) -> Option<Part> {
        let points = self.recipe.points().len();
        let is_valid = self.points.len() == points
            && points > 0
            && self.points.iter().all(SavedPoint::is_valid)
            && self.runs.iter().all(|run| run.is_valid(points))
            && self.runs.is_sorted_by(|a, b| a.span < b.span && !a.overlaps(b))
            && self.count.most() <= MOST
            && self.flows.len() <= MAX_FLOWS
            && self.flows.iter().all(|(flow, _)| flow.most() <= MOST)
            && self.captures.is_sorted_by(|(a, _), (b, _)| a < b)
            && self.course.are_valid();
        if !is_valid {
            return None;
        }
        let mut sums = Sums::empty(0);
        sums.captures = self.captures.into_iter().collect();
        // In the saved order the ranks of captures are their numbers.
        let numbering = Numbering { numbers: &[], captures: &sums.captures };
        let number = self.flows.len();
        let mut flows = self.flows.into_iter().map(|(flow, files)| flow.in_files(files));
        let are_new = flows.all(|flow| sums.flows.add(&flow, &numbering));
        sums.count = self.count;
        sums.points = self.points.into_iter().map(SavedPoint::sums).collect();
        sums.course = self.course;
        sums.started_at_ns = self.started_at_ns;
        sums.partial = self.partial.into_iter().collect();
        let runs = self.runs.into_iter().map(SavedRun::run).collect();
        let is_as_it_was = are_new && sums.flows.len() == number;
        is_as_it_was.then_some(Part { recipe: self.recipe, sums, runs })
    }
}

/// A histogram in a saved part: its buckets, sum and maximum.
type SavedHistogram = (Vec<(u64, u64)>, u64, u64);

fn saved(histogram: &Histogram) -> SavedHistogram {
    (histogram.buckets().collect(), histogram.sum(), histogram.max())
}

fn read((buckets, sum, max): SavedHistogram) -> Histogram {
    Histogram::from_buckets(buckets.into_iter(), sum, max)
}

#[derive(Serialize, Deserialize)]
struct SavedPoint {
    /// The counts of a point: frames, deliveries, aggregates, aggregated segments, singles, overruns, error bound,
    /// segments inside tunnels and their deliveries.
    counts: [u64; 9],
    bypassed: Vec<u64>,
    flushed: Vec<u64>,
    /// The histograms of a point: holds, segments and bytes of aggregates, packets of polls, pauses.
    histograms: [SavedHistogram; 5],
}

impl SavedPoint {
    fn of(sums: &PointSums) -> Self {
        let PointSums { frames, deliveries, aggregates, aggregated_segments, singles, .. } = *sums;
        let (sizes, polls) = (&sums.sizes, &sums.polls);
        Self {
            counts: [
                frames,
                deliveries,
                aggregates,
                aggregated_segments,
                singles,
                polls.overruns,
                sums.error_bound,
                sums.tunnelled,
                sums.tunnelled_deliveries,
            ],
            bypassed: sums.bypassed.clone(),
            flushed: sums.flushed.clone(),
            histograms: [
                saved(&sums.hold_ns),
                saved(&sizes.segments),
                saved(&sizes.payload_bytes),
                saved(&polls.packets),
                saved(&polls.pause_ns),
            ],
        }
    }

    fn is_valid(&self) -> bool {
        let reasons = self.bypassed.iter().chain(&self.flushed);
        // Without interfaces there was no engine, and nothing was counted by reason.
        let fits = |counts: &[u64], reasons| counts.is_empty() || counts.len() == reasons;
        fits(&self.bypassed, BypassReason::ALL.len())
            && fits(&self.flushed, FlushReason::ALL.len())
            && self.counts.iter().chain(reasons).all(|count| *count <= MOST)
    }

    fn sums(self) -> PointSums {
        let [
            frames,
            deliveries,
            aggregates,
            aggregated_segments,
            singles,
            overruns,
            error_bound,
            ..,
        ] = self.counts;
        let [.., tunnelled, tunnelled_deliveries] = self.counts;
        let [hold_ns, segments, payload_bytes, packets, pause_ns] = self.histograms.map(read);
        PointSums {
            frames,
            deliveries,
            aggregates,
            aggregated_segments,
            singles,
            tunnelled,
            tunnelled_deliveries,
            bypassed: self.bypassed,
            flushed: self.flushed,
            hold_ns,
            sizes: Aggregates { segments, payload_bytes },
            polls: PollFigures { packets, pause_ns, overruns },
            error_bound,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct SavedRun {
    span: Span,
    ends: Option<(Core, Vec<SavedFlow>)>,
}

#[derive(Serialize, Deserialize)]
struct SavedFlow {
    #[serde(with = "wire_key")]
    key: FlowKey,
    first: Option<PlainAck>,
    last: Option<PlainAck>,
}

impl SavedRun {
    fn of(run: &Run) -> Self {
        let ends = run.ends.as_ref().map(|ends| {
            let flows = ends.flows.iter();
            let mut flows: Vec<SavedFlow> = flows
                .map(|(key, (first, last))| SavedFlow { key: *key, first: *first, last: *last })
                .collect();
            flows.sort_by_cached_key(|flow| flow.key.to_bytes());
            (ends.inner.clone(), flows)
        });
        Self { span: run.span, ends }
    }

    fn overlaps(&self, next: &Self) -> bool {
        self.span.series == next.span.series && self.span.to > next.span.from
    }

    fn is_valid(&self, points: usize) -> bool {
        let are_sound = |(core, flows): &(Core, Vec<SavedFlow>)| {
            core.error_bounds.len() == points
                && core.error_bounds.iter().all(|error_bound| *error_bound <= MOST)
                && flows.len() <= MAX_FLOWS
        };
        self.span.from < self.span.to && self.ends.as_ref().is_none_or(are_sound)
    }

    fn run(self) -> Run {
        let ends = self.ends.map(|(inner, flows)| {
            let flows = flows.into_iter().map(|flow| (flow.key, (flow.first, flow.last)));
            Ends { inner, flows: flows.collect() }
        });
        Run { span: self.span, ends }
    }
}
