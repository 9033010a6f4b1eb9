//! Parts of a study. A part contains the counts of a section of a capture, or of some of many captures.
//!
//! [`Part::merge`] adds two parts. The bytes of the sum ([`Part::to_bytes`]) do not depend on the order and the
//! grouping of merges. Merged parts of a series give the same result as one pass over the series.
//!
//! * `sums`: the counts that are simply added: totals, flows by key, the traffic over time.
//! * `captures`: the files, and the numbers by which flows refer to them.
//! * `run`: the beginning and the end of a part. Everything that spans the cut between neighbouring parts (a
//!   pause, two ACKs that could be aggregated) is counted when the parts are joined. So is the possible error
//!   of a cut without a long pause.
//! * `recipe`: the settings that all parts must share.
//! * `save`: parts as bytes.
//!
//! # Contract
//! Merging is associative and commutative, as long as there are at most [`super::MAX_FLOWS`] flows: beyond
//! that, only the flows merged first have figures of their own. The sum is exact for a point of settings where
//! every cut is a pause longer than [`super::Point::reach`]; otherwise [`crate::report::Outcome`] contains a
//! bound of the error. A duplicate is not found if the packet that it repeats is in another part, which cannot
//! happen if the cut is at a pause of a millisecond or more. A packet that was merged before the capture is
//! found only after a few other packets of its flow in the same part. The memory of a part is the memory of its
//! flows, or twice as much if the part is cut at both ends.

mod captures;
mod recipe;
mod run;
mod save;
mod sums;

use thiserror::Error;

pub use self::save::PartError;

pub(super) use self::captures::{Captures, Numbering};
pub(super) use self::recipe::Recipe;
pub(super) use self::run::Run;
pub(super) use self::save::saved_histogram;
pub(super) use self::sums::{PointSums, Sums};

use super::point::Point;
use super::points::Points;
use super::rates::Rates;
use super::{Settings, Study, outcome};
use crate::projection::{ASSUMED_FROM, Costs};
use crate::report::Report;

/// The position of a part in a series of files. The files of a series are read in order, like one long file.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct Span {
    /// The number of the series, for example a hash of its files' names.
    pub series: u64,
    /// The beginning of the part: the number of a file from 0, and an offset in the file in bytes. A series
    /// begins at (0, 0).
    pub from: (u32, u64),
    /// The beginning of the next part: byte 0 of the next file if this part reads its last file to the end.
    pub to: (u32, u64),
    /// `true` if this part ends the series.
    pub is_last: bool,
}

impl Span {
    /// Returns `true` if the part is the whole series, so that there are no neighbouring parts.
    pub(super) fn is_whole(&self) -> bool {
        self.from == (0, 0) && self.is_last
    }
}

/// The user's choices for a report. They are applied after counting, so parts with different choices can be
/// merged.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The costs of receiving, from which the decision is computed.
    pub costs: Costs,
    /// The origin of the costs, as printed in reports (for example "assumed").
    pub costs_from: String,
    /// The number of flows that the report lists.
    pub top: usize,
}

impl Default for Terms {
    fn default() -> Self {
        Self { costs: Costs::ASSUMED, costs_from: ASSUMED_FROM.to_owned(), top: 10 }
    }
}

/// The counts of a part of a series. See the module's documentation.
#[derive(Clone, Debug)]
pub struct Part {
    pub(super) recipe: Recipe,
    pub(super) sums: Sums,
    /// The runs of the part, in order. A run is a section of the series without a gap. No two runs are
    /// adjacent.
    runs: Vec<Run>,
}

/// The reason why two parts cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MergeError {
    /// The parts were made with different settings.
    #[error("it was made with other settings")]
    Settings,
    /// Both parts contain the same packets.
    #[error("its packets are already in another part")]
    Overlap,
}

impl Part {
    pub(super) fn new(recipe: Recipe, sums: Sums, run: Run) -> Self {
        // An empty stretch cannot be ordered between its neighbours, so it is left out.
        let runs = if run.span.from < run.span.to { vec![run] } else { Vec::new() };
        let mut part = Self { recipe, sums, runs };
        part.close();
        part
    }

    /// Returns the sum of this part and `other`. Allocates for new flows. The cost grows with the size of the
    /// smaller part, and with the number of runs that are not adjacent.
    ///
    /// # Errors
    /// [`MergeError`] if the parts do not belong together. Both parts are then dropped.
    ///
    /// # Examples
    /// ```
    /// use rxo_coalesce::Policy;
    /// use rxo_trace::study::{Part, Point, Settings, Study, Terms};
    ///
    /// let point = Point { policy: Policy::linux_gro(), poll: "time:50us".parse()? };
    /// let count = |name: &str| {
    ///     let mut study = Study::new(Settings::new(point))?;
    ///     study.begin_source(name);
    ///     // Here `Study::take` gets the records.
    ///     study.end_source("pcapng", None);
    ///     Ok::<_, Box<dyn std::error::Error>>(study.into_part(None, None))
    /// };
    /// // Counted on one machine, and sent to another.
    /// let bytes = count("monday.pcapng")?.to_bytes();
    /// let both = count("tuesday.pcapng")?.merge(Part::from_bytes(&bytes)?)?;
    /// assert_eq!(both.report(&Terms::default()).sources.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge(mut self, mut other: Self) -> Result<Self, MergeError> {
        if self.recipe != other.recipe {
            return Err(MergeError::Settings);
        }
        if self.sums.flows.len() < other.sums.flows.len() {
            core::mem::swap(&mut self.sums, &mut other.sums);
        }
        self.sums.add(other.sums);
        let points = self.recipe.points();
        for run in other.runs {
            self.insert(run, &points)?;
        }
        self.close();
        Ok(self)
    }

    /// Inserts a run between its neighbours, and joins it with the neighbours that are adjacent.
    fn insert(&mut self, run: Run, points: &[Point]) -> Result<(), MergeError> {
        let at = self.runs.partition_point(|known| known.span < run.span);
        let before = at.checked_sub(1).and_then(|at| self.runs.get(at));
        let is_twice = before.is_some_and(|before| before.overlaps(&run))
            || self.runs.get(at).is_some_and(|after| run.overlaps(after));
        if is_twice {
            return Err(MergeError::Overlap);
        }
        self.runs.insert(at, run);
        for at in [at + 1, at] {
            let meets = |pair: &[Run]| pair[0].is_before(&pair[1]);
            if at > 0 && self.runs.get(at - 1..=at).is_some_and(meets) {
                let later = self.runs.remove(at);
                self.runs[at - 1].join(later, points, &mut self.sums);
            }
        }
        Ok(())
    }

    /// Drops the end states of runs that cannot get a neighbour any more.
    fn close(&mut self) {
        self.runs.iter_mut().for_each(Run::close);
    }

    /// Returns `true` if no part of the series is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.runs.iter().all(Run::is_complete)
    }

    /// Returns the number of packets counted, including those that the filter excluded.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.sums.count.packets.saturating_add(self.sums.count.filtered_packets)
    }

    /// Returns the report on all packets counted so far. If parts of the series are missing, the report states
    /// this.
    #[must_use]
    pub fn report(&self, terms: &Terms) -> Report {
        // The settings were checked when the part was made or read.
        let settings = self.recipe.read();
        settings.map_or_else(Report::default, |settings| outcome::report(self, &settings, terms))
    }

    /// Returns the reason why the part's own figures are incomplete: damage, or reading that stopped early; `None` if
    /// the figures are complete.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        let damaged = || self.sums.captures.sources().find_map(|source| source.damage.clone());
        self.sums.partial.first().cloned().or_else(damaged)
    }

    /// Returns the reason why the figures are incomplete, for example missing parts; `None` if the figures are
    /// complete.
    pub(super) fn partial(&self) -> Option<String> {
        let missing = || Some("parts of the captures are missing".to_owned());
        self.damage().or_else(|| if self.is_complete() { None } else { missing() })
    }
}

impl Study {
    /// Ends the study of a part of a series, and returns the part. `span` is the position of the part in the
    /// series; `None` if the part is the whole series. `partial` is the reason why reading stopped early, other
    /// than damage.
    #[must_use]
    pub fn into_part(mut self, span: Option<Span>, partial: Option<String>) -> Part {
        self.deliver_all();
        self.counted(span, partial)
    }

    /// Returns the counts of a live interface, and its rates.
    pub(super) fn into_part_and_rates(mut self, partial: Option<String>) -> (Part, Option<Rates>) {
        self.deliver_all();
        let rates = self.chosen.rates.take();
        (self.counted(None, partial), rates)
    }

    /// Delivers all held packets, because no more packets arrive.
    fn deliver_all(&mut self) {
        self.lanes.finish(self.clock.now(), &mut self.chosen);
    }

    fn counted(mut self, span: Option<Span>, partial: Option<String>) -> Part {
        // Only a neighbour reads the ends, and those of a million flows take 200 MB.
        let has_neighbours = span.as_ref().is_some_and(|span| !span.is_whole());
        let ends = if has_neighbours { self.ends() } else { None };
        let sums = Sums::of(&mut self, span.as_ref(), partial);
        let span = span.unwrap_or_else(|| Span {
            series: sums.mark(),
            from: (0, 0),
            to: (self.sources.len() as u32, 0),
            is_last: true,
        });
        Part::new(self.recipe, sums, Run { span, ends })
    }
}

/// A 64-bit FNV-1a hash, which is equal on every machine. The hash is not safe for keys that an attacker
/// chooses.
#[derive(Clone, Copy, Debug)]
pub struct Mark(pub u64);

impl Default for Mark {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Mark {
    /// Adds the bytes of one field to the hash.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u32).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Returns all points that a study with the settings `settings` has.
pub(super) fn points_of(settings: &Settings) -> Points {
    Points::of(settings)
}
