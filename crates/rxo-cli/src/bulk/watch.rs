//! Lets the sessions work, and shows figures meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Error, Result};
use hdrhistogram::Histogram;
use rxo::live::host::Outcome;
use rxo_console::printer::Printer;

use super::crowd::Crowd;
use super::figures::{Ends, Figures, Frames, RoundTrips};
use super::meter::{Meter, Reading};
use super::plan::Plan;
use super::session::Done;
use super::show;
use crate::endpoint::Endpoint;
use crate::exit::partial;
use crate::hosting::FastTotals;

/// The result of all sessions.
#[derive(Debug)]
pub(super) struct Watched {
    begun: Reading,
    ended: Reading,
    done: Vec<Done>,
    failures: Vec<Error>,
    /// Time from a request to the end of its response, in nanoseconds.
    round_trips: Option<Histogram<u64>>,
    was_interrupted: bool,
}

/// Runs all sessions; returns when every connection has ended, or after a signal.
///
/// # Errors
/// If the port is taken, or figures have no form as JSON. Failures of connections are in the result.
pub(super) fn until_done(plan: &Plan, endpoint: &Endpoint, printer: &Printer) -> Result<Watched> {
    let mut crowd = Crowd::new(plan, endpoint)?;
    let mut last = None;
    while crowd.turn(LOOK) {
        tick((plan, printer), crowd.meter(), &mut last)?;
    }
    let (ended, was_interrupted) = (crowd.meter().read(), endpoint.was_asked());
    let begun = crowd.meter().begun().unwrap_or(ended);
    let round_trips = crowd.take_round_trips();
    let Crowd { done, failures, .. } = crowd;
    Ok(Watched { begun, ended, done, failures, round_trips, was_interrupted })
}

/// Shows a line if an interval has passed.
fn tick(
    (plan, printer): (&Plan, &Printer),
    meter: &Meter,
    last: &mut Option<Reading>,
) -> Result<()> {
    let (Some(interval), Some(begun)) = (plan.interval.get(), meter.begun()) else {
        return Ok(());
    };
    let from = *last.get_or_insert(begun);
    if from.at + interval > Instant::now() {
        return Ok(());
    }
    let now = meter.read();
    *last = Some(now);
    printer.offer(show::interval(plan, &Figures::between("interval", &begun, &from, &now))?);
    Ok(())
}

impl Watched {
    /// Computes the figures of the whole run.
    pub(super) fn totals(&self, outcome: &Outcome) -> Figures {
        let mut figures = Figures::between("totals", &self.begun, &self.begun, &self.ended);
        figures.connections = Some(self.done.len());
        figures.frames = Some(Frames::of(&outcome.counters));
        figures.fast_path = FastTotals::of(&outcome.counters.fast);
        figures.round_trips = self.round_trips.as_ref().map(RoundTrips::of);
        figures.ends = self.done.iter().filter_map(Ends::of).collect();
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
const LOOK: Duration = Duration::from_millis(10);
