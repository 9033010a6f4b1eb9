//! Starts the sessions and shows figures while they work.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::{Error, Result};
use hdrhistogram::Histogram;
use rxo::live::host::Outcome;
use rxo_console::printer::Printer;
use rxo_host::TcpStream;

use super::figures::{Ends, Figures, Frames, RoundTrips};
use super::meter::{Meter, Reading};
use super::plan::Plan;
use super::session::{self, Done};
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
    was_interrupted: bool,
}

/// Runs all sessions; returns when every connection has ended, or after a signal.
///
/// # Errors
/// If no thread can be started. Failures of connections are in the result.
pub(super) fn until_done(plan: &Plan, endpoint: &Endpoint, printer: &Printer) -> Result<Watched> {
    let meter = Arc::new(Meter::default());
    let listening = endpoint.listen()?;
    thread::scope(|scope| {
        let (tell, hear) = channel();
        match listening {
            None => {
                for _ in 0..plan.connections {
                    let open = || endpoint.connect();
                    start(scope, (plan, endpoint, &meter), open, tell.clone())?;
                }
                drop(tell);
            }
            Some(listeners) => {
                let meter = &meter;
                scope.spawn(move || {
                    for _ in 0..plan.connections {
                        let accepted = endpoint.accept(&listeners).transpose();
                        let Some(accepted) = accepted else { return };
                        let open = move || accepted;
                        if let Err(error) =
                            start(scope, (plan, endpoint, meter), open, tell.clone())
                        {
                            // Sending fails only if the main thread has stopped receiving, which is harmless.
                            _ = tell.send(Err(error));
                            return;
                        }
                    }
                });
            }
        }
        watch((plan, printer), endpoint, &meter, &hear)
    })
}

/// Starts the thread of one connection.
fn start<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    (plan, endpoint, meter): (&'scope Plan, &'scope Endpoint, &'scope Arc<Meter>),
    open: impl FnOnce() -> Result<TcpStream> + Send + 'scope,
    tell: Sender<Result<Done>>,
) -> Result<()> {
    let builder = thread::Builder::new().stack_size(STACK_BYTES);
    builder.spawn_scoped(scope, move || {
        let done = open().and_then(|stream| session::run(plan, endpoint, meter, &stream));
        // Sending fails only if the main thread has stopped after a print error, which is harmless.
        _ = tell.send(done);
    })?;
    Ok(())
}

fn watch(
    (plan, printer): (&Plan, &Printer),
    endpoint: &Endpoint,
    meter: &Meter,
    hear: &Receiver<Result<Done>>,
) -> Result<Watched> {
    let (mut done, mut failures) = (Vec::new(), Vec::new());
    let mut last = None;
    let mut ended = meter.read();
    loop {
        match hear.recv_timeout(LOOK) {
            Ok(Ok(one)) => done.push(one),
            Ok(Err(error)) => failures.push(error),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                tick((plan, printer), meter, &mut last)?;
                continue;
            }
        }
        ended = meter.read();
    }
    let was_interrupted = endpoint.was_asked();
    let begun = meter.begun().unwrap_or(ended);
    Ok(Watched { begun, ended, done, failures, was_interrupted })
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
        figures.round_trips = self.round_trips();
        figures.ends = self.done.iter().filter_map(Ends::of).collect();
        figures
    }

    fn round_trips(&self) -> Option<RoundTrips> {
        let mut all: Option<Histogram<u64>> = None;
        for one in self.done.iter().filter_map(|done| done.round_trips.as_ref()) {
            match &mut all {
                None => all = Some(one.clone()),
                // Both have the same bounds, so the sum cannot fail.
                Some(all) => _ = all.add(one),
            }
        }
        all.as_ref().map(RoundTrips::of)
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
/// Stack of a session's thread. Its buffers are on the heap.
const STACK_BYTES: usize = 128 * 1024;
