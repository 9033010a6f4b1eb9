//! The held segments of a flow, in order, and the runs that they form.
//!
//! The runs of a list of segments are unique: the first run contains as many segments from the front as the rules
//! and the floor permit, and the next run begins behind it. Insertion keeps exactly these runs. It examines the
//! run into which the segment is inserted, and the runs behind it until one begins at the same segment as before
//! the insertion.

use alloc::vec::Vec;

use rxo_frame::{Frame, Instant};
use rxo_wire::{FlowHash, FlowKey, SeqNumber, Transport};

use super::floor::Floor;
use super::shelf::{NO_PLACE, Shelf};
use super::{Rules, Run};
use crate::held::Segment;
use crate::verdict::regular_step;
use crate::{Candidate, Config, FlushReason, Held};

/// The rules, the floor and the frames, which together determine the runs of a flow.
pub(super) struct Grouping<'a, R, B> {
    pub(super) rules: &'a R,
    pub(super) floor: &'a Floor,
    pub(super) config: &'a Config,
    pub(super) shelf: &'a Shelf<B>,
    pub(super) key: FlowKey,
}

/// Returns the runs that `segments` of the flow `key` form under `rules`, each segment with its arrival time.
/// The segments must be candidates of one flow, in the order in which they are held. For tests of rules: it
/// groups all segments anew. Allocates.
pub fn runs_of<R: Rules>(
    rules: &R,
    key: FlowKey,
    segments: &[(Candidate<'_>, Instant)],
) -> Vec<Run> {
    let floor = Floor::of(rules.policy());
    let mut runs: Vec<Run> = Vec::new();
    let mut last: Option<&Candidate<'_>> = None;
    for (place, (next, at)) in segments.iter().enumerate() {
        let open = runs.last_mut().zip(last);
        last = Some(next);
        if let Some((run, last)) = open {
            run.end = end(rules, &floor, run, last, Some(next));
            if run.end.is_none() {
                append(rules, run, (last, next), (key, *at, place as u32));
                continue;
            }
        }
        runs.push(begin(next, (key, *at, place as u32)));
    }
    if let Some((run, last)) = runs.last_mut().zip(last) {
        run.end = end(rules, &floor, run, last, None);
    }
    runs
}

/// Returns the reason for which `run` ends before `next`; `None` if it does not.
fn end<R: Rules>(
    rules: &R,
    floor: &Floor,
    run: &Run,
    last: &Candidate<'_>,
    next: Option<&Candidate<'_>>,
) -> Option<FlushReason> {
    let held = &run.held;
    let refused = || {
        let next = next?;
        let by_rules = rules.close(held, last, Some(next));
        by_rules.or_else(|| (!floor.joins(held, last, next)).then_some(FlushReason::OutOfSequence))
    };
    rules.close(held, last, None).or_else(refused)
}

/// Returns a run that contains only the segment `first`. `at` contains its flow, its arrival time, and its place
/// on the shelf.
fn begin(first: &Candidate<'_>, at: (FlowKey, Instant, u32)) -> Run {
    let (segment, place) = (segment_of(first, at), at.2);
    let mut held = Held::BLANK;
    held.begin(&segment);
    Run { held, oldest: at.1, end: None, first: place, last: place }
}

/// Appends `next` to `run`, whose last segment is `last`.
fn append<R: Rules>(
    rules: &R,
    run: &mut Run,
    (last, next): (&Candidate<'_>, &Candidate<'_>),
    at: (FlowKey, Instant, u32),
) {
    let id_step = regular_step(last, next);
    run.held.append(&Segment { id_step, ..segment_of(next, at) }, rules.policy());
    run.oldest = run.oldest.min(at.1);
    run.last = at.2;
}

fn segment_of(candidate: &Candidate<'_>, (key, at, _): (FlowKey, Instant, u32)) -> Segment {
    // Of the frame only the arrival time is read, and the hash is that of the fast engine's table.
    Segment::of(candidate, (key, FlowHash(0)), &Frame::new([0_u8; 0], at), 0)
}

impl<R: Rules, B: AsRef<[u8]>> Grouping<'_, R, B> {
    /// Reads the segment at the place `at` of the shelf; `None` if there is none.
    pub(super) fn read(&self, at: u32) -> Option<(Candidate<'_>, Instant)> {
        let frame = self.shelf.frame(at)?;
        let parsed = self.config.read(frame.bytes()).ok()?;
        let Transport::Tcp(tcp) = &parsed.transport else { return None };
        Some((Candidate::new(&parsed, tcp, frame), frame.arrived_at))
    }

    /// Updates the runs after the segment at the place `new` was linked behind the segment `before`, or at
    /// the front if that is [`NO_PLACE`].
    pub(super) fn insert(&self, runs: &mut Vec<Run>, new: u32, (index, before): (usize, u32)) {
        let (index, run) = match runs.get(index) {
            Some(run) if before == run.last => (index, Some(runs.remove(index))),
            Some(run) if before != NO_PLACE => {
                let first = run.first;
                runs.remove(index);
                (index, self.begin_at(first))
            }
            _ => (0, self.begin_at(new)),
        };
        if let Some(run) = run {
            self.extend(runs, index, run);
        }
    }

    fn begin_at(&self, place: u32) -> Option<Run> {
        let (first, at) = self.read(place)?;
        Some(begin(&first, (self.key, at, place)))
    }

    /// Extends `run`, which belongs at `index`, by the segments behind it, and forms new runs until one
    /// begins where an old one began.
    fn extend(&self, runs: &mut Vec<Run>, mut index: usize, mut run: Run) {
        while let Some((last, _)) = self.read(run.last) {
            let place = self.shelf.after(run.last);
            let next = self.read(place);
            run.end = end(self.rules, self.floor, &run, &last, next.as_ref().map(|(next, _)| next));
            let Some((next, at)) = next else { break };
            let begins_old_run = runs.get(index).is_some_and(|old| old.first == place);
            if run.end.is_none() {
                append(self.rules, &mut run, (&last, &next), (self.key, at, place));
                if begins_old_run {
                    runs.remove(index);
                }
                continue;
            }
            if begins_old_run {
                break;
            }
            runs.insert(index, core::mem::replace(&mut run, begin(&next, (self.key, at, place))));
            index += 1;
        }
        runs.insert(index, run);
    }
}

/// Returns the place, in the order of sequence numbers, for a segment with the sequence number `seq`: the index
/// of a run and the place of the segment before it; [`NO_PLACE`] if it belongs at the front.
pub(super) fn place_of<B>(runs: &[Run], shelf: &Shelf<B>, seq: SeqNumber) -> (usize, u32) {
    let Some(index) = runs.iter().rposition(|run| !seq.is_before(run.first_seq())) else {
        return (0, NO_PLACE);
    };
    let run = &runs[index];
    if !seq.is_before(run.held.next_seq) {
        return (index, run.last);
    }
    let mut before = run.first;
    while before != run.last && !seq.is_before(shelf.seq(shelf.after(before))) {
        before = shelf.after(before);
    }
    (index, before)
}
