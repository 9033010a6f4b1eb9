//! `rxo serve`: files over HTTP/1.1, on rxo's own stack.
//!
//! HTTP itself is the library [`rxo_serve`]; here are its threads and sockets. From the outside in: the
//! flags become a [`plan`]; the [`server`] accepts clients from the [`stack`], with a thread for each
//! and a bounded number of [`places`]; [`talk`] is the loop of such a thread over a [`client`]; each
//! request becomes a line of [`access`]. All but [`stack`] is generic over the connection, so it is
//! tested without it.

mod access;
mod client;
mod places;
mod plan;
mod server;
mod stack;
mod talk;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use rxo_console::printer::Printer;
use rxo_serve::files::{NoRoot, Root};
use serde::Serialize;

use self::access::Access;
use self::places::Places;
use self::plan::Plan;
use self::server::Shared;
use crate::exit::usage;
use crate::flags::ServeFlags;
use crate::hosting::{self, Listeners};
use crate::{output, stop};

/// Serves until a signal.
///
/// # Errors
/// If the plan is invalid, the directory cannot be read, the device cannot be opened, or the device
/// fails while in use.
pub(crate) fn command(flags: &ServeFlags) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let root = open_root(&plan.directory)?;
    // From here on a signal asks for an end instead of making one.
    let stop = stop::on_request()?;
    let host = plan.host.start()?;
    let listeners = Listeners::open(&host.handle(), plan.addresses(), plan.clients)?;
    announce(&plan)?;
    let skipped = if plan.json { access::skipped_json } else { access::skipped_text };
    let printer = Arc::new(Printer::start(MOST_LINES_WAITING, skipped, Arc::clone(&stop))?);
    let shared = Arc::new(shared(&plan, root, stop, Arc::clone(&printer)));
    let mut link = plan.host.link_notices()?;
    let tick = || link.next().into_iter().for_each(|notice| printer.note(notice));
    let served = server::serve(&listeners, &shared, tick);
    drop(listeners);
    let printed = printer.finish(LAST_LINES);
    // If the host failed, that is the reason for everything else.
    hosting::finish(host)?;
    served.context("no more clients can come")?;
    printed
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

fn shared(plan: &Plan, root: Root, stop: Arc<AtomicBool>, printer: Arc<Printer>) -> Shared {
    let json = plan.json;
    let log = move |access: &Access| {
        // It has texts and numbers: it is JSON.
        let line = if json { output::json(access).unwrap_or_default() } else { access.text() };
        printer.offer(line);
    };
    Shared {
        root,
        limits: plan.limits,
        places: Places::new(plan.clients, plan.per_peer),
        stop,
        log: Box::new(log),
    }
}

/// Prints the first line: the server is at work.
fn announce(plan: &Plan) -> Result<()> {
    #[derive(Serialize)]
    struct Serving {
        directory: String,
        addresses: Vec<SocketAddr>,
        clients: usize,
    }
    let directory = plan.directory.display().to_string();
    let addresses: Vec<SocketAddr> = plan.addresses().collect();
    if plan.json {
        return output::json_line(&Serving { directory, addresses, clients: plan.clients });
    }
    let urls: Vec<String> = addresses.iter().map(|address| format!("http://{address}/")).collect();
    output::text(&format!("serving {directory} at {}", urls.join(" ")))
}

/// The most access lines that wait for their reader. A line is long if its target is, which is part of the head
/// of a request: 16 KiB, or three times as much if all of it is escaped.
const MOST_LINES_WAITING: usize = 1_024;
/// How long the reader of the access lines may take at the end.
const LAST_LINES: Duration = Duration::from_secs(1);
