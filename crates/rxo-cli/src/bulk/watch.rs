//! Watch: runs the sessions, and prints figures during the run.

use std::mem;
use std::time::{Duration, Instant};

use anyhow::{Error, Result};
use hdrhistogram::Histogram;
use rxo::live::host::Outcome;
use rxo_console::printer::Printer;

use super::crowd::Crowd;
use super::figures::{Ends, Figures, Frames, RoundTrips, WorkerTotals};
use super::meter::{Meters, Reading};
use super::places::Places;
use super::plan::Plan;
use super::session::Done;
use super::show;
use crate::endpoint::Endpoint;
use crate::exit::partial;
use crate::hosting::FastTotals;
use crate::loops;

/// The result of all sessions.
#[derive(Debug)]
pub(super) struct SessionResults {
    begun: Reading,
    ended: Reading,
    done: Vec<Done>,
    failures: Vec<Error>,
    /// The round-trip times: from a request to the end of its response, in nanoseconds. `None` if no requests
    /// were sent.
    round_trips: Option<Histogram<u64>>,
    /// The number of connections of each worker that ended.
    connections: Vec<usize>,
    was_interrupted: bool,
}

/// The results of one worker's sessions: the sessions that succeeded, the errors of the sessions that failed,
/// and the round-trip times.
type OfWorker = (Vec<Done>, Vec<Error>, Option<Histogram<u64>>);

/// Runs all sessions; returns when every connection has ended, or after a signal.
///
/// # Errors
/// If the port is in use, a thread has failed, or the figures cannot be written as JSON. Failures of
/// connections are in the result.
pub(super) fn until_done(
    plan: &Plan,
    endpoint: &Endpoint,
    printer: &Printer,
) -> Result<SessionResults> {
    let workers = endpoint.host().handles();
    let meters = Meters::new(workers.len());
    let places = Places::divided(plan.connections, workers.len(), endpoint.accepts());
    let crowds = workers.iter().zip(meters.each().zip(places));
    let crowds = crowds.map(|(handle, own)| Crowd::new(plan, (endpoint, handle), own));
    let (mut last, mut shown) = (None, Ok(()));
    let mut tick = || {
        let line = line(plan, &meters, &mut last);
        match line.transpose() {
            Some(Ok(line)) => printer.offer(line),
            Some(Err(error)) => shown = Err(error),
            None => {}
        }
    };
    let (crowds, stop) = (crowds.collect::<Result<Vec<_>>>()?, endpoint.stop());
    let cpus = endpoint.host().cpus();
    let of_workers =
        loops::run(crowds, (cpus, &stop), |crowd, tick| Ok(work(crowd, tick)), &mut tick);
    let (of_workers, ended) = (of_workers?, meters.read());
    shown?;
    let begun = meters.begun().unwrap_or_else(|| ended.clone());
    let was_interrupted = endpoint.is_signalled();
    SessionResults::new((begun, ended), of_workers, was_interrupted)
}

/// Runs the sessions of one worker until the last has ended.
fn work(mut crowd: Crowd<'_>, tick: &mut dyn FnMut()) -> OfWorker {
    while crowd.turn(CHECK_INTERVAL) {
        tick();
    }
    let round_trips = crowd.take_round_trips();
    let Crowd { done, failures, .. } = crowd;
    (done, failures, round_trips)
}

/// Returns a statistics line if an interval has passed; otherwise `None`.
fn line(plan: &Plan, meters: &Meters, last: &mut Option<Reading>) -> Result<Option<String>> {
    let (Some(interval), Some(begun)) = (plan.interval.get(), meters.begun()) else {
        return Ok(None);
    };
    let from = last.get_or_insert_with(|| begun.clone());
    if from.moment.at + interval > Instant::now() {
        return Ok(None);
    }
    let from = mem::replace(from, meters.read());
    let now = last.as_ref().unwrap_or(&from);
    show::interval(plan, &Figures::between("interval", &begun, &from, now)).map(Some)
}

impl SessionResults {
    fn new(
        (begun, ended): (Reading, Reading),
        of_workers: Vec<OfWorker>,
        was_interrupted: bool,
    ) -> Result<Self> {
        let connections = of_workers.iter().map(|(done, ..)| done.len()).collect();
        let (mut done, mut failures, mut round_trips) = (Vec::new(), Vec::new(), None);
        for (more_done, more_failures, more) in of_workers {
            done.extend(more_done);
            failures.extend(more_failures);
            round_trips = match (round_trips.take(), more) {
                (Some(mut all), Some(more)) => {
                    Histogram::add(&mut all, more)?;
                    Some(all)
                }
                (all, more) => all.or(more),
            };
        }
        Ok(Self { begun, ended, done, failures, round_trips, connections, was_interrupted })
    }

    /// Computes the figures of the whole run.
    pub(super) fn totals(&self, outcome: &Outcome) -> Figures {
        let mut figures = Figures::between("totals", &self.begun, &self.begun, &self.ended);
        figures.connections = Some(self.done.len());
        figures.frames = Some(Frames::of(&outcome.counters));
        figures.fast_path = FastTotals::of(&outcome.counters.fast);
        figures.round_trips = self.round_trips.as_ref().map(RoundTrips::of);
        figures.ends = self.done.iter().filter_map(Ends::of).collect();
        let each = self.connections.iter().zip(&outcome.workers);
        for (worker, (connections, reading)) in figures.workers.iter_mut().zip(each) {
            worker.totals = Some(WorkerTotals::new(*connections, reading));
        }
        figures
    }

    /// Returns the result of the command.
    ///
    /// # Errors
    /// The first failure of a session, or the interruption.
    pub(super) fn outcome(mut self) -> Result<()> {
        let cut = self.was_interrupted && self.done.iter().any(|done| done.was_interrupted);
        if self.was_interrupted && (cut || self.done.is_empty() || !self.failures.is_empty()) {
            return Err(partial("interrupted; the totals are of what there was"));
        }
        if self.failures.is_empty() { Ok(()) } else { Err(self.failures.swap_remove(0)) }
    }
}

/// Interval at which the main thread checks whether a line is due.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
