//! A scripted client of the server. Time passes only while the client is idle.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rxo_serve::files::Root;
use rxo_serve::{Exchange, PIECE_BYTES, Rules, Server, Text};

use super::LIMITS;
use super::script::{Manner, Script};

struct Client<'s>(Rc<RefCell<Script<'s>>>);

impl rxo_serve::Client for Client<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.borrow_mut().read(into)
    }

    fn write(&mut self, bytes: &[u8], text: Option<&Text>) -> io::Result<usize> {
        let text = text.map_or(&[][..], AsRef::as_ref);
        self.0.borrow_mut().write(&[bytes, text].concat())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reset(&mut self) {}
}

/// Runs a conversation. Returns the bytes that the client received, and the log.
pub(super) fn talk(root: &Arc<Root>, says: &[u8], manner: Manner) -> (Vec<u8>, Vec<Exchange>) {
    let script = Rc::new(RefCell::new(Script::new(says, manner)));
    // The time is long after the files were made, so that their entity tags are strong at once.
    let (mut now, date) = (Instant::now(), SystemTime::now() + Duration::from_secs(3_600));
    let mut server = Server::new(Arc::clone(root), RULES, Arc::new(|| ()));
    let peer = SocketAddr::from(([10, 0, 0, 9], 1_000));
    server.admit(peer, (now, date), |_| Client(Rc::clone(&script)));
    let mut logged = Vec::new();
    while !server.is_empty() {
        server.turn(date, &mut || now);
        logged.extend(server.exchanges().map(|(_, exchange)| exchange));
        now = server.poll_at(now).unwrap_or(now);
    }
    let heard = std::mem::take(&mut script.borrow_mut().heard);
    (heard, logged)
}

/// Rules of the server: never full, so that every client may stay, and without threads, so that the order is
/// fixed.
const RULES: Rules = Rules {
    limits: LIMITS,
    clients: 2,
    per_peer: 2,
    cache_bytes: 2 * PIECE_BYTES,
    readers: 0,
    disk: Duration::from_secs(30),
};
