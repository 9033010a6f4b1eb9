//! `rxo sink` and `rxo source`: measure the rate and the processor cost at which rxo's own TCP receives
//! and sends. The peer may be a Linux socket or another rxo.
//!
//! The flags become a [`plan`]. Each connection has a [`session`]. Each worker of the host has a [`crowd`] of
//! sessions on its own thread, and a [`meter`]. The first crowd is on the main thread, which also reads the
//! meters ([`watch`]) and shows [`figures`]. The measured cost is that of the whole process, with two threads
//! for each worker, however many connections there are.

mod crowd;
mod figures;
mod meter;
mod places;
mod plan;
mod session;
mod show;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use rxo_console::log;
use rxo_console::printer::Printer;

use self::plan::Plan;
use crate::control::{
    ControlAddresses, Interval, Refusal, Stats, host_process, with_sockets_removed,
};
use crate::endpoint::Endpoint;
use crate::flags::{SinkFlags, SourceFlags};

/// Receives until all connections have ended.
///
/// # Errors
/// If the plan is invalid, the device cannot be opened, or a connection fails.
pub(crate) fn sink(flags: &SinkFlags) -> Result<()> {
    let (host, addresses) =
        (&flags.endpoint.host, ControlAddresses::from_flags(&flags.meter.control)?);
    with_sockets_removed(host, &addresses, || run("rxo sink", &Plan::of_sink(flags)?))
}

/// Sends until the time has passed or everything is sent.
///
/// # Errors
/// The errors of [`sink`].
pub(crate) fn source(flags: &SourceFlags) -> Result<()> {
    let (host, addresses) =
        (&flags.endpoint.host, ControlAddresses::from_flags(&flags.meter.control)?);
    with_sockets_removed(host, &addresses, || run("rxo source", &Plan::of_source(flags)?))
}

fn run(command: &'static str, plan: &Plan) -> Result<()> {
    let sockets = plan.addresses.bind()?;
    let endpoint = Endpoint::start(&plan.endpoint)?;
    let stats: Box<dyn Stats> = Box::new(Lines(Arc::clone(&plan.interval)));
    let process = host_process(command, endpoint.host(), Some(stats));
    let _served = sockets.serve(process)?;
    log::begin(plan.log, &plan.endpoint.host.nic().to_string())?;
    let skipped = if plan.json { show::skipped_json } else { show::skipped_text };
    let printer = Printer::start(MOST_WAITING, skipped, endpoint.stop())?;
    let watched = watch::until_done(plan, &endpoint, &printer)?;
    let (outcome, ended) = endpoint.end();
    printer.line(show::totals(plan, &watched.totals(&outcome))?);
    let printed = printer.finish();
    ended?;
    watched.outcome()?;
    printed
}

/// Maximum number of lines that wait to be printed.
const MOST_WAITING: usize = 32;

/// Prints statistics lines at an interval that may change during the run.
struct Lines(Arc<Interval>);

impl Stats for Lines {
    fn every(&self) -> Option<Duration> {
        self.0.get()
    }

    fn change(&self, every: Option<Duration>) -> Result<(), Refusal> {
        self.0.set(every);
        Ok(())
    }
}
