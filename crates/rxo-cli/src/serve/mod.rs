//! `rxo serve`: files over HTTP/1.1, on rxo's own stack.
//!
//! From the outside in: the flags become a [`plan`]; the [`server`] takes clients in from the
//! [`stack`], a thread for each and [`places`] for so many; [`conversation`] is one client:
//! [`heads`] cuts what it sends into requests, [`request`] reads one, [`site`] finds its file and
//! decides the [`answer`], [`send`] sends it. The decisions are pure and each in its file:
//! [`target`] (which file), [`conditions`] (which version), [`ranges`] (which bytes), [`types`],
//! [`listing`]. [`root`] is the only one that opens files. All but [`stack`] is generic over the
//! connection ([`client`]), so it is tested without it; what a [`conversation`] needs is what the fuzz
//! target `http` is made of.

mod access;
mod answer;
mod client;
mod conditions;
mod conversation;
mod heads;
mod limits;
mod listing;
#[cfg(test)]
mod pipe;
mod places;
mod plan;
mod ranges;
mod refusal;
mod request;
mod root;
mod send;
mod server;
mod site;
mod stack;
mod target;
mod types;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Error, Result};
use rxo_host::Handle;
use serde::Serialize;

use self::access::Access;
use self::places::Places;
use self::plan::Plan;
use self::root::{NoRoot, Root};
use self::server::Shared;
use self::site::Site;
use self::stack::Doors;
use crate::exit::usage;
use crate::flags::ServeFlags;
use crate::{hosting, output, stop};

/// Serves until a signal.
///
/// # Errors
/// When the plan cannot be, the directory not be read, the device not be opened, or one fails while
/// in use.
pub(crate) fn command(flags: &ServeFlags) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let root = open_root(&plan.directory)?;
    // From here on a signal asks for an end instead of making one.
    let stop = stop::on_request()?;
    let host = plan.host.start()?;
    let doors = open(&plan, &host.handle())?;
    say(&plan)?;
    let shared = Arc::new(shared(&plan, root, Arc::clone(&stop)));
    let served = server::serve(&doors, &shared);
    drop(doors);
    // What ended the host is the reason for everything else.
    hosting::finish(host)?;
    served.context("no more clients can come")
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

fn open(plan: &Plan, host: &Handle) -> Result<Doors> {
    let listen = |address: SocketAddr| {
        let listener = host.listen(address, plan.clients);
        let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    Ok(Doors(plan.addresses().map(listen).collect::<Result<_>>()?))
}

fn shared(plan: &Plan, root: Root, stop: Arc<AtomicBool>) -> Shared {
    let (json, seen) = (plan.json, Arc::clone(&stop));
    let log = move |access: &Access| {
        let said = if json { output::json_line(access) } else { output::text(&access.text()) };
        // Nobody reads any more: that is an end like any other.
        if said.is_err() {
            seen.store(true, Ordering::Relaxed);
        }
    };
    Shared {
        site: Site::new(root),
        limits: plan.limits,
        places: Places::new(plan.clients, plan.per_peer),
        stop,
        log: Box::new(log),
    }
}

/// The first line: it is at work.
fn say(plan: &Plan) -> Result<()> {
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
