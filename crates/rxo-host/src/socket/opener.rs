//! Opens connections and listeners for the threads of applications.
//!
//! A host that is not sharded is one of one shard. A connection is opened on a shard that has room, from a local port
//! whose answers come in there. A listener is on all shards.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rxo_wire::FlowKey;

use super::listening::{BoundListener, Part, worker_ended};
use super::{Accept, Listening};
use crate::cell::{Bound, Cell, Signal, Socket};
use crate::post::{Command, Post};

/// The commands of a handle, for any type of buffer.
pub(crate) trait Opener: Send + Sync {
    fn connect(&self, remote: SocketAddr) -> io::Result<Arc<dyn Socket>>;
    fn listen(&self, local: SocketAddr, backlog: usize) -> io::Result<Arc<dyn Accept>>;
}

/// The shards of a host.
pub(crate) struct Shards<B> {
    posts: Vec<Arc<Post<B>>>,
    /// Counts connections, which are opened on the shards in turn.
    opened: AtomicUsize,
}

impl<B> Shards<B> {
    pub(crate) fn new(posts: Vec<Arc<Post<B>>>) -> Arc<Self> {
        Arc::new(Self { posts, opened: AtomicUsize::new(0) })
    }
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> Opener for Shards<B> {
    fn connect(&self, remote: SocketAddr) -> io::Result<Arc<dyn Socket>> {
        let first = self.opened.fetch_add(1, Ordering::Relaxed) % self.posts.len().max(1);
        let (before, from) = self.posts.split_at(first);
        let mut outcome = Err(worker_ended());
        for post in from.iter().chain(before) {
            outcome = connect(post, remote);
            if !outcome.as_ref().is_err_and(is_of_one_shard) {
                break;
            }
        }
        outcome
    }

    fn listen(&self, local: SocketAddr, backlog: usize) -> io::Result<Arc<dyn Accept>> {
        let running: Vec<_> = self.posts.iter().filter(|post| !post.is_closed()).collect();
        let Some(first) = running.first() else { return Err(worker_ended()) };
        if !local.ip().is_unspecified() && !first.settings.link.is_ours(local.ip()) {
            let message = format!("{} is not an address of this host", local.ip());
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
        }
        let local = first.listeners.take(local)?;
        let (backlog, signal) = (backlog.div_ceil(running.len()), Arc::<Signal>::default());
        let part = |post: &&Arc<Post<B>>| {
            let listening = Listening::new(local, backlog, Arc::clone(&signal));
            post.send(Command::Listen(Arc::clone(&listening)));
            Part { listening, post: Arc::clone(*post) }
        };
        let parts = running.iter().map(part).collect();
        Ok(BoundListener::bind(local, parts, signal))
    }
}

/// Whether another shard may have room, or run.
fn is_of_one_shard(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, NotConnected, QuotaExceeded};
    matches!(error.kind(), QuotaExceeded | AddrNotAvailable | NotConnected)
}

fn connect<B: AsRef<[u8]> + Send + Sync + 'static>(
    post: &Arc<Post<B>>,
    remote: SocketAddr,
) -> io::Result<Arc<dyn Socket>> {
    if post.is_closed() {
        return Err(worker_ended());
    }
    let source = post.settings.link.source_for(remote.ip());
    let source = source.ok_or_else(|| no_route(remote.ip()))?;
    if !post.take_socket() {
        let message = format!("all {} sockets are in use", post.settings.sockets);
        return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
    }
    let cell = cell(post, source, remote).inspect_err(|_| post.give_back_socket())?;
    post.send(Command::Open(Arc::clone(&cell)));
    Ok(Bound::bind(cell))
}

/// A cell for a connection to be opened. Its port is none on which there is a listener.
fn cell<B: AsRef<[u8]>>(
    post: &Arc<Post<B>>,
    source: IpAddr,
    remote: SocketAddr,
) -> io::Result<Arc<Cell<B>>> {
    let source = SocketAddr::new(source, 0);
    let shard = post.shard;
    let pair = post.ports().take(source, remote, &post.listeners.ports(), |it| shard.owns(it));
    let pair = pair.ok_or_else(|| no_port(remote))?;
    let made = new_cell(post, pair);
    made.inspect_err(|_| post.ports().give_back(&pair))
}

fn new_cell<B: AsRef<[u8]>>(post: &Arc<Post<B>>, pair: FlowKey) -> io::Result<Arc<Cell<B>>> {
    let share = post.memory().reserve(post.settings.tcp(&pair)).ok_or_else(no_memory)?;
    match post.settings.connection(pair, share) {
        Ok(connection) => Ok(Cell::new(connection, share, Arc::clone(post))),
        Err(error) => {
            post.memory().give_back(share);
            Err(io::Error::other(error))
        }
    }
}

fn no_memory() -> io::Error {
    let message = "all memory for connections is in use; close some, or give the host more";
    io::Error::new(io::ErrorKind::QuotaExceeded, message)
}

fn no_route(remote: IpAddr) -> io::Error {
    let message = format!("no route to {remote}; give the host an address or a route for it");
    io::Error::new(io::ErrorKind::NetworkUnreachable, message)
}

fn no_port(remote: SocketAddr) -> io::Error {
    let message = format!("all ports are taken by connections to {remote}; close some");
    io::Error::new(io::ErrorKind::AddrNotAvailable, message)
}
