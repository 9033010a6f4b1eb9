//! Opens connections and listeners for application threads.
//!
//! An unsharded host has a single shard. A connection is opened on a shard with free capacity, from a local
//! port whose answers arrive on that shard. A listener is on all shards.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use rxo_tcp::ParityBlock;
use rxo_wire::FlowKey;

use super::listening::{BoundListener, Part, worker_ended};
use super::{Accept, Listening};
use crate::FastModules;
use crate::cast::{Cast, CastCommand, CastConfig, Opened};
use crate::cell::{Bound, Cell, GroupFlow, Signal, Socket};
use crate::post::{Command, Place, Post};

/// The operations of a [`Handle`](super::Handle), independent of the device's buffer type.
pub(crate) trait Opener: Send + Sync {
    fn connect(&self, remote: SocketAddr) -> io::Result<Arc<dyn Socket>>;
    fn join(&self, remote: SocketAddr, group: SocketAddr) -> io::Result<Arc<dyn Socket>>;
    fn listen(&self, local: SocketAddr, backlog: usize) -> io::Result<Arc<dyn Accept>>;
    fn cast(&self, config: CastConfig) -> io::Result<Cast>;
    fn fast_path(&self) -> FastModules;
    fn set_fast_path(&self, modules: FastModules);
    fn wake(&self);
}

/// The shared state of all shards of a host.
pub(crate) struct Shards<B> {
    posts: Vec<Arc<Post<B>>>,
    /// Number of connections opened so far. Connections are opened on the shards in turn.
    opened: AtomicUsize,
}

impl<B> Shards<B> {
    pub(crate) fn new(posts: Vec<Arc<Post<B>>>) -> Arc<Self> {
        Arc::new(Self { posts, opened: AtomicUsize::new(0) })
    }

    /// Returns the place of a listener on `address` of these shards.
    fn place(&self, address: SocketAddr) -> Place {
        let shard = match &self.posts[..] {
            [post] => Some(post.shard.index()),
            _ => None,
        };
        Place { address, shard }
    }
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> Opener for Shards<B> {
    fn connect(&self, remote: SocketAddr) -> io::Result<Arc<dyn Socket>> {
        let first = self.opened.fetch_add(1, Ordering::Relaxed) % self.posts.len().max(1);
        let (before, from) = self.posts.split_at(first);
        let mut outcome = Err(worker_ended());
        for post in from.iter().chain(before) {
            outcome = connect(post, remote, None);
            if !outcome.as_ref().is_err_and(is_of_one_shard) {
                break;
            }
        }
        outcome
    }

    fn join(&self, remote: SocketAddr, group: SocketAddr) -> io::Result<Arc<dyn Socket>> {
        let [post] = self.posts.as_slice() else {
            let message = "a host in several shards cannot belong to groups; give it one queue";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        };
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        connect(post, remote, Some(GroupFlow::new(remote, group).map_err(invalid)?))
    }

    fn listen(&self, local: SocketAddr, backlog: usize) -> io::Result<Arc<dyn Accept>> {
        let running: Vec<_> = self.posts.iter().filter(|post| !post.is_closed()).collect();
        let Some(first) = running.first() else { return Err(worker_ended()) };
        if !local.ip().is_unspecified() && !first.settings.link.is_ours(local.ip()) {
            let message = format!("{} is not an address of this host", local.ip());
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
        }
        let place = first.listeners.take(self.place(local))?;
        let (backlog, signal) = (backlog.div_ceil(running.len()), Arc::<Signal>::default());
        let part = |post: &&Arc<Post<B>>| {
            let listening = Listening::new(place.address, backlog, Arc::clone(&signal));
            post.send(Command::Listen(Arc::clone(&listening)));
            Part { listening, post: Arc::clone(*post) }
        };
        let parts = running.iter().map(part).collect();
        Ok(BoundListener::bind(place, parts, signal))
    }

    fn cast(&self, mut config: CastConfig) -> io::Result<Cast> {
        config.check()?;
        let [post] = &self.posts[..] else {
            let message = "a cast needs a host with one worker";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        };
        if post.is_closed() {
            return Err(worker_ended());
        }
        if !post.settings.link.is_ours(config.local.ip()) {
            let message = format!("{} is not an address of this host", config.local.ip());
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
        }
        let place = post.listeners.take(self.place(config.local))?;
        config.local = place.address;
        let signal = Arc::<Signal>::default();
        let backlog = config.receivers + MORE_OPENING;
        let listening = Listening::new(config.local, backlog, Arc::clone(&signal));
        let (events, receiver) = channel();
        let room = Arc::new(AtomicU64::new(config.buffer_bytes.into()));
        let opened =
            Opened { config, listening: Arc::clone(&listening), events, room: Arc::clone(&room) };
        post.send_cast(CastCommand::Open(opened));
        let part = || Part { listening: Arc::clone(&listening), post: Arc::clone(post) };
        let listener = BoundListener::bind(place, vec![part()], signal);
        Ok(Cast::new(Box::new(part()), listener, receiver, room))
    }

    fn fast_path(&self) -> FastModules {
        self.posts.first().map_or(FastModules::OFF, |post| post.fast_path())
    }

    fn set_fast_path(&self, modules: FastModules) {
        self.posts.iter().for_each(|post| post.set_fast_path(modules));
    }

    fn wake(&self) {
        self.posts.iter().for_each(|post| post.send(Command::Turn));
    }
}

/// The number of half-open connections that the listener of a cast permits beyond the maximum number of
/// receivers.
const MORE_OPENING: usize = 64;

/// Returns `true` if the error concerns only one shard, so that the call may succeed on another shard.
fn is_of_one_shard(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, NotConnected, QuotaExceeded};
    matches!(error.kind(), QuotaExceeded | AddrNotAvailable | NotConnected)
}

fn connect<B: AsRef<[u8]> + Send + Sync + 'static>(
    post: &Arc<Post<B>>,
    remote: SocketAddr,
    group: Option<GroupFlow>,
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
    let cell = cell(post, source, remote, group).inspect_err(|_| post.release_socket())?;
    post.send(Command::Open(Arc::clone(&cell)));
    Ok(Bound::bind(cell))
}

/// Creates the state of a connection to be opened. The local port of the connection is not used by any
/// listener.
fn cell<B: AsRef<[u8]>>(
    post: &Arc<Post<B>>,
    source: IpAddr,
    remote: SocketAddr,
    group: Option<GroupFlow>,
) -> io::Result<Arc<Cell<B>>> {
    let source = SocketAddr::new(source, 0);
    let shard = post.shard;
    let pair = post.ports().take(source, remote, &post.listeners.ports(), |it| shard.owns(it));
    let pair = pair.ok_or_else(|| no_port(remote))?;
    let made = new_cell(post, pair, group);
    made.inspect_err(|_| post.ports().release(&pair))
}

fn new_cell<B: AsRef<[u8]>>(
    post: &Arc<Post<B>>,
    pair: FlowKey,
    group: Option<GroupFlow>,
) -> io::Result<Arc<Cell<B>>> {
    let share = post.memory().reserve(post.settings.tcp(&pair)).ok_or_else(no_memory)?;
    match post.settings.connection(pair, share) {
        Ok(mut connection) => {
            if group.is_some() {
                let segment_bytes = u32::from(post.settings.tcp(&pair).maximum_segment_size);
                connection.keep_read_text(segment_bytes * ParityBlock::MOST_SEGMENTS as u32);
            }
            Ok(Cell::in_group(connection, share, Arc::clone(post), group))
        }
        Err(error) => {
            post.memory().release(share);
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
