//! `rxo serve`: serves files over HTTP/1.1, on rxo's own stack.
//!
//! The library [`rxo_serve`] implements HTTP and the scheduling of clients; this module adds sockets and a
//! clock. The flags become a [`plan`]; the [`server`] is the loop, one for each worker of the host and on a thread of its
//! own; each request becomes a line of [`access`].

mod access;
mod plan;
mod server;
mod slack;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Error, Result};
use rxo_confine::InForce;
use rxo_console::log;
use rxo_console::printer::Printer;
use rxo_host::HostCounters;
use rxo_serve::files::{NoRoot, Root};
use rxo_serve::{Exchange, Places};
use serde::Serialize;

use self::access::Access;
use self::plan::Plan;
use self::server::Loop;
use crate::control::{ControlAddresses, host_process, with_sockets_removed};
use crate::exit::usage;
use crate::flags::ServeFlags;
use crate::hosting::FastTotals;
use crate::{files, loops, output, stop};

/// Serves until a signal.
///
/// # Errors
/// If the plan is invalid, the directory cannot be read, the device cannot be opened, or the device
/// fails while in use.
pub(crate) fn command(flags: &ServeFlags) -> Result<()> {
    let addresses = ControlAddresses::from_flags(&flags.control)?;
    with_sockets_removed(&flags.host, &addresses, || serve(flags))
}

fn serve(flags: &ServeFlags) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let root = Arc::new(open_root(&plan.directory)?);
    // From here on a signal sets a flag instead of ending the process.
    let stop = stop::on_request()?;
    let sockets = plan.addresses.bind()?;
    allow_files(plan.clients);
    let mut host = plan.start_host()?;
    let listeners = plan.listen(&host)?;
    let _served = sockets.serve(host_process("rxo serve", &host, None))?;
    log::begin(plan.log, &plan.host.nic().to_string())?;
    plan.memory_note().iter().for_each(|note| output::note(note));
    let skipped = if plan.json { access::skipped_json } else { access::skipped_text };
    let printer = Printer::start(MOST_LINES_WAITING, skipped, Arc::clone(&stop))?;
    printer.line(announcement(&plan, host.in_force())?);
    let (cpus, count, places) = (host.cpus().to_vec(), listeners.len(), Places::default());
    let link = host.link_notices();
    let mut tick = || link.next().iter().for_each(|notice| output::note(notice));
    let log = |peer, exchange| printer.offer(line(&plan, peer, exchange));
    let work = |listeners, tick: &mut dyn FnMut()| {
        let shared = (Arc::clone(&root), places.clone());
        let mut work = Loop::new(&plan, count, shared, listeners)?;
        work.run(&stop, log, tick).context("no more clients can come")
    };
    let served = loops::run(listeners, (&cpus, &stop), work, &mut tick);
    // If the host failed, that is the reason for all other errors.
    let outcome = host.finish(&stop)?;
    let fast_path = fast_path(&plan, FastTotals::of(&outcome.counters.fast))?;
    fast_path.into_iter().for_each(|line| printer.line(line));
    let printed = printer.finish();
    short_of_memory(&outcome.counters).iter().for_each(|note| output::note(note));
    served?;
    printed
}

/// Raises the limit of open files to the maximum that `clients` clients could need: each file that is being
/// sent is open.
fn allow_files(clients: usize) {
    if let Some(most) = files::allow((clients + OTHER_FILES) as u64) {
        output::note(&format!(
            "{most} open files are allowed: if {clients} clients ask for as many files, some get status 503; \
             raise `ulimit -n`"
        ));
    }
}

/// Returns a line for the user if memory ran short and clients were refused or slowed down; otherwise `None`.
fn short_of_memory(counters: &HostCounters) -> Option<String> {
    let (syns, texts) = (counters.tcp.syns_without_memory, counters.tcp.texts_without_memory);
    (syns + texts > 0).then(|| {
        format!("{syns} SYNs and {texts} segments were dropped for want of memory; give more by --memory")
    })
}

fn line(plan: &Plan, peer: SocketAddr, exchange: Exchange) -> String {
    let access = Access::new(peer, exchange);
    // The value has texts and numbers, so it always has a JSON form.
    if plan.json {
        output::json(&access).unwrap_or_default()
    } else {
        log::for_output(access.text())
    }
}

fn open_root(directory: &Path) -> Result<Root> {
    let shown = directory.display();
    Root::open(directory).map_err(|why| match why {
        NoRoot::NoDirectory(error) => usage(format!("{shown}: {error}; give a directory to serve")),
        NoRoot::NoWall(error) => Error::from(error).context(format!(
            "{shown} cannot be served: openat2 is needed, which Linux has since 5.6"
        )),
    })
}

/// Returns the last line, with the totals of the fast path; `None` if the fast path was never on.
fn fast_path(plan: &Plan, totals: Option<FastTotals>) -> Result<Option<String>> {
    #[derive(Serialize)]
    struct Totals {
        fast_path: FastTotals,
    }
    let line = |fast_path: FastTotals| match plan.json {
        true => output::json(&Totals { fast_path }),
        false => Ok(log::for_output(fast_path.text())),
    };
    totals.map(line).transpose()
}

/// Returns the first line, which reports that the server is running.
fn announcement(plan: &Plan, in_force: &InForce) -> Result<String> {
    #[derive(Serialize)]
    struct Serving {
        directory: String,
        addresses: Vec<SocketAddr>,
        clients: usize,
        /// The limits of this process.
        sandbox: String,
    }
    let directory = plan.directory.display().to_string();
    let addresses: Vec<SocketAddr> = plan.addresses().collect();
    if plan.json {
        let (clients, sandbox) = (plan.clients, in_force.to_string());
        return output::json(&Serving { directory, addresses, clients, sandbox });
    }
    let urls: Vec<String> = addresses.iter().map(|address| format!("http://{address}/")).collect();
    let urls = urls.join(" ");
    Ok(log::for_output(format!("serving {directory} at {urls} (sandbox: {in_force})")))
}

/// Maximum number of access lines that wait to be printed. A line can be long, because it contains the
/// request's target: at most 16 KiB, or three times as much if every character is escaped.
const MOST_LINES_WAITING: usize = 1_024;
/// Number of open files that the server needs in addition to the files that are being sent.
const OTHER_FILES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_found_no_memory_is_said_at_the_end() {
        let mut counters = HostCounters::default();
        counters.tcp.syns_dropped = 7;
        assert_eq!(short_of_memory(&counters), None, "a listener was full");
        counters.tcp.syns_without_memory = 5;
        let said = short_of_memory(&counters).unwrap();
        assert_eq!(
            said,
            "5 SYNs and 0 segments were dropped for want of memory; give more by --memory"
        );
    }
}
