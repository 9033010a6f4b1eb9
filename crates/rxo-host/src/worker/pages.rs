//! Lists the connections of a host, a page at a time, for observers.
//!
//! The worker only copies references to the cells of a page. The observer then locks and reads each cell, as an
//! application does. So the cost for the worker depends on the page size, not on the number of connections, and
//! a locked cell delays only the observer.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rxo_tcp::{Algorithm, Buffers, State, Statistics};

use super::slots::Slots;
use crate::cell::Cell;

/// Some connections of a host. A connection that exists while all pages are requested is on exactly one page. A
/// connection that is opened or closed in the meantime may be on no page.
pub struct ConnectionPage {
    /// The index of the first slot of the next page; `None` after the last page.
    pub next: Option<u32>,
    cells: Vec<Arc<dyn Look>>,
}

/// A snapshot of a connection. Connections in TIME-WAIT are only counted, and are on no page.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionView {
    /// The local address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub peer: SocketAddr,
    /// The state of the connection.
    pub state: State,
    /// Number of bytes that were received in order and that the application has not read.
    pub unread_bytes: usize,
    /// The current sizes of the connection's buffers, in bytes.
    pub buffers: Buffers,
    /// The congestion control algorithm of the connection.
    pub algorithm: Algorithm,
    /// `true` if the application has dropped its handle.
    pub is_orphan: bool,
    /// The statistics of the connection.
    pub statistics: Statistics,
}

/// The view of a connection for an observer, independent of the device's buffer type.
trait Look: Send + Sync {
    fn look(self: Arc<Self>) -> ConnectionView;
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> Look for Cell<B> {
    fn look(self: Arc<Self>) -> ConnectionView {
        self.with(|inner| ConnectionView {
            local: self.pair.sender(),
            peer: self.pair.receiver(),
            state: inner.connection.state(),
            unread_bytes: inner.connection.readable_bytes(),
            buffers: inner.connection.buffers(),
            algorithm: inner.connection.algorithm(),
            is_orphan: self.is_orphan(),
            statistics: inner.connection.statistics(),
        })
    }
}

impl ConnectionPage {
    /// Takes a snapshot of each connection on the page. Blocks until each connection's lock is free;
    /// applications hold the lock only while they read or write. Must not be called on the worker's thread.
    #[must_use]
    pub fn look(self) -> Vec<ConnectionView> {
        self.cells.into_iter().map(Look::look).collect()
    }
}

impl fmt::Debug for ConnectionPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells = self.cells.len();
        f.debug_struct("ConnectionPage").field("next", &self.next).field("cells", &cells).finish()
    }
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> Slots<B> {
    /// Returns a page of at most `most` slots, beginning with slot `from`.
    pub(super) fn connections(&self, from: u32, most: usize) -> ConnectionPage {
        let (slots, end) = self.page(from, most);
        let cells = slots.map(|slot| Arc::clone(&slot.cell) as Arc<dyn Look>).collect();
        let next = (end < self.places()).then_some(end as u32);
        ConnectionPage { next, cells }
    }
}
