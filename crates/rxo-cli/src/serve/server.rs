//! Clients from a listener, each on a thread of its own, so many at once.
//!
//! Threads, not readiness: reading a file blocks whatever the socket can do, so an event loop would
//! need threads beside it, and a conversation that blocks is read from top to bottom. What a client
//! costs is bounded: a small stack, a head, and one piece of a file or of a page of names while it is being
//! sent, about 100 KiB beside what the stack keeps for the connection; their number, and that of the
//! clients of one address, is bounded by [`Places`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::access::Access;
use super::client::Client;
use super::conversation::{Host, converse, refuse};
use super::limits::Limits;
use super::places::{Place, Places};
use super::refusal::Refusal;
use super::site::Site;
use crate::output;

/// Where clients come in.
pub(super) trait Door {
    type Client: Client + Send + 'static;

    /// The next client and its address; `None` when none came within `time`.
    ///
    /// # Errors
    /// When no client can come any more.
    fn accept_within(&self, time: Duration) -> io::Result<Option<(Self::Client, SocketAddr)>>;
}

/// What all clients share.
pub(super) struct Shared {
    pub(super) site: Site,
    pub(super) limits: Limits,
    pub(super) places: Arc<Places>,
    pub(super) stop: Arc<AtomicBool>,
    /// Told of each request, from any thread.
    pub(super) log: Box<dyn Fn(&Access) + Send + Sync>,
}

/// Serves until [`Shared::stop`] is set; then those who are there get a moment.
///
/// # Errors
/// When the listener breaks.
pub(super) fn serve(door: &impl Door, shared: &Arc<Shared>) -> io::Result<()> {
    let mut free = None;
    while !shared.stop.load(Ordering::Relaxed) {
        let Some(place) = free.take().or_else(|| shared.places.take(PAUSE)) else { continue };
        match door.accept_within(PAUSE)? {
            Some((client, peer)) => match place.of(peer.ip()) {
                Some(place) => {
                    if let Err(error) = begin(client, peer, shared, place) {
                        output::note(&format!("no thread for {peer} ({error}): lower --clients"));
                    }
                }
                None => shared.turn_away(client, peer),
            },
            None => free = Some(place),
        }
    }
    drop(free);
    shared.places.wait_until_empty(FAREWELL);
    Ok(())
}

fn begin(
    mut client: impl Client + Send + 'static,
    peer: SocketAddr,
    shared: &Arc<Shared>,
    place: Place,
) -> io::Result<()> {
    let shared = Arc::clone(shared);
    let thread = thread::Builder::new().name("client".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || {
        shared.converse(&mut client, peer);
        // First the connection, then its place.
        drop(client);
        drop(place);
    })?;
    Ok(())
}

impl Shared {
    /// Tells a client whose address has enough places that it cannot stay. It gets no thread, so nobody
    /// waits for it: what does not fit into its connection's buffer is not said.
    fn turn_away(&self, mut client: impl Client, peer: SocketAddr) {
        let what = refuse(&mut client, Refusal::new(503, "too many connections of one address"));
        (self.log)(&Access::new(peer, what, Duration::ZERO));
    }

    fn converse(&self, client: &mut impl Client, peer: SocketAddr) {
        let may_keep = || !self.places.are_all_taken() && !self.stop.load(Ordering::Relaxed);
        let log = |what, took| (self.log)(&Access::new(peer, what, took));
        let host = Host { site: &self.site, limits: &self.limits, may_keep: &may_keep, log: &log };
        converse(client, &host);
    }
}

/// How soon a stop is seen.
const PAUSE: Duration = Duration::from_millis(100);
/// How long those who are in the midst of something get at the end.
const FAREWELL: Duration = Duration::from_secs(1);
/// Several times what a conversation was seen to take.
const STACK_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests;
