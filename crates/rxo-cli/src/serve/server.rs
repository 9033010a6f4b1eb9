//! Clients from a listener, each on a thread of its own.
//!
//! Threads, not readiness: reading a file blocks whatever the socket can do, so an event loop would
//! need threads beside it. The cost of a client is bounded: a small stack, a request head and one
//! piece of a file, about 100 KiB beside the buffers of the connection. While a listing of a directory is
//! sent, its names are in memory, once for all clients that list it unchanged. [`Places`] bounds the
//! number of clients, in all and from one address.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rxo_serve::files::Root;
use rxo_serve::{Conversation, Limits, Now, talk};

use super::access::Access;
use super::client::Client;
use super::places::{Place, Places};
use super::talk::Host;
use crate::output;

/// A listener, or several.
pub(super) trait Door {
    type Client: Client + Send + 'static;

    /// Accepts the next client and its address; `None` if none came within `time`.
    ///
    /// # Errors
    /// If no client can come any more.
    fn accept_within(&self, time: Duration) -> io::Result<Option<(Self::Client, SocketAddr)>>;
}

/// The state that all clients share.
pub(super) struct Shared {
    pub(super) root: Root,
    pub(super) limits: Limits,
    pub(super) places: Arc<Places>,
    pub(super) stop: Arc<AtomicBool>,
    /// Called with each request, from any thread; it does not wait.
    pub(super) log: Box<dyn Fn(&Access) + Send + Sync>,
}

/// Serves until [`Shared::stop`] is set; then the remaining clients get a second to end. Calls `tick`
/// at least ten times a second.
///
/// # Errors
/// If the listener breaks.
pub(super) fn serve(
    door: &impl Door,
    shared: &Arc<Shared>,
    mut tick: impl FnMut(),
) -> io::Result<()> {
    let mut free = None;
    while !shared.stop.load(Ordering::Relaxed) {
        tick();
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
        shared.hold(&mut client, Conversation::new(shared.limits), peer);
        // First the connection, then its place.
        drop(client);
        drop(place);
    })?;
    Ok(())
}

impl Shared {
    /// Answers a client whose address has enough places with status 503. It gets no thread and is not
    /// waited for: bytes that do not fit into the connection's buffer are not sent.
    fn turn_away(&self, mut client: impl Client, peer: SocketAddr) {
        let now = Now { instant: Instant::now(), date: SystemTime::now(), may_stay: false };
        let last = Conversation::turned_away("too many connections of one address", now);
        self.hold(&mut client, last, peer);
    }

    fn hold(&self, client: &mut impl Client, conversation: Conversation, peer: SocketAddr) {
        let may_stay = || !self.places.are_all_taken() && !self.stop.load(Ordering::Relaxed);
        let log = |exchange| (self.log)(&Access::new(peer, exchange));
        talk(&mut Host { client, may_stay: &may_stay, log: &log }, conversation, &self.root);
    }
}

/// The time between two looks at [`Shared::stop`].
const PAUSE: Duration = Duration::from_millis(100);
/// How long answers that have begun may take at the end.
const FAREWELL: Duration = Duration::from_secs(1);
/// The stack of a client's thread: several times the largest measured need.
const STACK_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests;
