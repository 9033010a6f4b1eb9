//! The connections of a host, seen from outside, a page at a time.
//!
//! The worker only hands out references to the cells of a page; whoever asked for the page then looks into each, with
//! its lock, as an application does. So ten thousand connections cost the worker the same per turn as ten, and one
//! whose application holds the lock is waited for by nobody else.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rxo_tcp::{Algorithm, Buffers, State, Statistics};

use super::slots::Slots;
use crate::cell::{Cell, local, peer};

/// Some connections of a host. One that exists while all pages are taken is in exactly one of them; one that comes or
/// goes meanwhile may be in none.
pub struct ConnectionPage {
    /// Where the next page begins; `None` after the last.
    pub next: Option<u32>,
    cells: Vec<Arc<dyn Look>>,
}

/// A connection at one moment. Those in TIME-WAIT are only counted, and are in no page.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionView {
    /// This side.
    pub local: SocketAddr,
    /// The other side.
    pub peer: SocketAddr,
    /// Its state.
    pub state: State,
    /// Bytes that have arrived in order and that the application has not read.
    pub unread_bytes: usize,
    /// The sizes of its buffers now.
    pub buffers: Buffers,
    /// Its congestion control.
    pub algorithm: Algorithm,
    /// Whether its application is gone.
    pub is_orphan: bool,
    /// Everything that the endpoint knows of it.
    pub statistics: Statistics,
}

/// A cell, for any type of buffer.
trait Look: Send + Sync {
    fn look(self: Arc<Self>) -> ConnectionView;
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> Look for Cell<B> {
    fn look(self: Arc<Self>) -> ConnectionView {
        self.with(|inner| ConnectionView {
            local: local(&self.pair),
            peer: peer(&self.pair),
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
    /// Looks into each connection of the page. Waits for the lock of each, which applications hold only while they
    /// read or write. Must not be called by the worker.
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
    /// At most `most` places from the place `from` on.
    pub(super) fn connections(&self, from: u32, most: usize) -> ConnectionPage {
        let (slots, end) = self.page(from, most);
        let cells = slots.map(|slot| Arc::clone(&slot.cell) as Arc<dyn Look>).collect();
        let next = (end < self.places()).then_some(end as u32);
        ConnectionPage { next, cells }
    }
}
