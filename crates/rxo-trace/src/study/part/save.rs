//! Saves parts as bytes, to be stored or sent to another machine.
//!
//! ```text
//!  "rxo-part"   version (u16)   names (u64)   fields (postcard 1)   CRC-32 of all before (u32)
//! ```
//!
//! Numbers outside the fields are little-endian. `names` is a hash of the names of all counts and reasons: the
//! hash changes when a name is added, so that a part of another version is not misread. Equal parts have equal
//! bytes.

use std::collections::BTreeSet;

use rxo_coalesce::{BypassReason, FlushReason};
use serde::Deserialize;
use thiserror::Error;

use super::super::count::Count;
use super::super::course::Steps;
use super::super::flows::{Flow, MAX_FLOWS};
use super::captures::{Numbering, Place};
use super::{Mark, Part, PointSums, Recipe, Run, Sums};
use crate::report::Source;

const VERSION: u16 = 9;
const HEAD_BYTES: usize = Part::MAGIC.len() + 2 + 8;
const CRC_BYTES: usize = 4;
/// The maximum count that is accepted in a saved part. The limit allows adding many counts without overflow.
const MOST: u64 = 1 << 56;

/// The reason why bytes cannot be read as a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PartError {
    /// The bytes do not begin like a saved part.
    #[error("it is not a part of a study")]
    Foreign,
    /// The bytes were written by a version of rxo with other counts.
    #[error("it is a part made by another version of rxo; make it again")]
    Version,
    /// The bytes of the part are truncated or were changed.
    #[error("it is a part, but truncated or damaged")]
    Damaged,
}

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
        let flows: Vec<_> = flows.iter().map(|flow| (*flow, flow.files.map(rank))).collect();
        let captures: Vec<_> = sums.captures.iter().collect();
        // The fields of `Saved`, in its order.
        let fields = (
            (&self.recipe, &sums.count, &sums.points, flows, &sums.course, sums.started_at_ns),
            (captures, &sums.partial, &self.runs),
        );
        // This fails only for maps of unknown length, and there are none.
        let fields = postcard::to_allocvec(&fields).unwrap_or_default();
        bytes.extend(fields);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    /// Reads a part from the bytes that [`Part::to_bytes`] returned. Allocates at most a few times the length
    /// of `bytes`.
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

    /// Reads a part from its encoded fields: the bytes of a saved part without its head and its CRC. Without
    /// the CRC, changed bytes may go undetected.
    ///
    /// # Errors
    /// [`PartError::Damaged`] if the fields do not form a valid part.
    pub fn from_fields(fields: &[u8]) -> Result<Self, PartError> {
        let (saved, rest) =
            postcard::take_from_bytes::<Saved>(fields).map_err(|_| PartError::Damaged)?;
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

/// The fields of a part.
#[derive(Deserialize)]
struct Saved {
    recipe: Recipe,
    count: Count,
    points: Vec<PointSums>,
    /// The flows, each with the ranks of its first and last capture.
    flows: Vec<(Flow, [u32; 2])>,
    course: Steps,
    started_at_ns: u64,
    captures: Vec<(Place, Source)>,
    partial: BTreeSet<String>,
    runs: Vec<Run>,
}

impl Saved {
    fn part(self) -> Option<Part> {
        let points = self.recipe.points().len();
        let is_valid = self.points.len() == points
            && points > 0
            && self.points.iter().all(|sums| sums.is_valid(MOST))
            && self.runs.iter().all(|run| run.is_valid(points, MOST))
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
        sums.points = self.points;
        sums.course = self.course;
        sums.started_at_ns = self.started_at_ns;
        sums.partial = self.partial;
        let is_as_it_was = are_new && sums.flows.len() == number;
        is_as_it_was.then_some(Part { recipe: self.recipe, sums, runs: self.runs })
    }
}

/// A histogram in a saved part: its buckets, sum and maximum.
pub(in super::super) mod saved_histogram {
    use rxo_coalesce::Histogram;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in super::super::super) fn serialize<S: Serializer>(
        histogram: &Histogram,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let buckets: Vec<(u64, u64)> = histogram.buckets().collect();
        (buckets, histogram.sum(), histogram.max()).serialize(to)
    }

    pub(in super::super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Histogram, D::Error> {
        let (buckets, sum, max) = <(Vec<(u64, u64)>, u64, u64)>::deserialize(from)?;
        Ok(Histogram::from_buckets(buckets.into_iter(), sum, max))
    }
}
