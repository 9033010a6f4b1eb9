//! A receiver's side of parity repair: the parity packets for the connections that have joined a group, and the
//! segments that are restored from them.
//!
//! The module is separate from `memberships.rs`, which handles TCP segments. Parity packets are datagrams, and
//! wait here while an application holds the lock of their connection.

use std::collections::VecDeque;

use rxo_frame::Instant;
use rxo_tcp::{Parity, ParityCollector};

use super::connections::Connections;
use crate::buffer::Buffer;
use crate::cell::{Cell, Inner};
use crate::erasure::{Decoder, IS_BUILT};

/// The parity packets for one connection.
#[derive(Debug, Default)]
pub(super) struct Restoring {
    /// The payloads of parity packets that the connection has not processed yet, at most [`MOST_WAITING`].
    waiting: VecDeque<Vec<u8>>,
    collector: ParityCollector,
    decoder: Decoder,
}

impl Restoring {
    /// Stores the payload of a datagram to the group. Drops the payload if [`MOST_WAITING`] payloads wait.
    pub(super) fn collect(&mut self, payload: &[u8]) {
        if IS_BUILT && self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(payload.to_vec());
        }
    }

    /// Restores the segments that the connection at index `place` lacks, as far as the parity packets that
    /// have arrived permit. Does nothing while an application holds the connection's lock.
    pub(super) fn restore_lost<B: AsRef<[u8]> + Default + Send + Sync + 'static>(
        &mut self,
        connections: &mut Connections<B>,
        place: u32,
        now: Instant,
    ) {
        if self.waiting.is_empty() && self.collector.is_empty() {
            return;
        }
        let Some(slot) = connections.slots.get(place) else { return };
        if slot.cell.serve(|inner| self.restore_locked(inner, now)) == Some(true) {
            connections.touch(place);
        }
    }

    /// Restores the segments that a connection lacks, while its lock is held. Returns `true` if at least one
    /// segment was restored.
    fn restore_locked<B: AsRef<[u8]>>(&mut self, inner: &mut Inner<B>, now: Instant) -> bool {
        let Self { waiting, collector, decoder } = self;
        let connection = &mut inner.connection;
        for payload in waiting.drain(..) {
            if let Some(parity) = Parity::read(&payload) {
                collector.take(connection, &parity, now);
            }
        }
        let mut has_restored = false;
        while let Some(incomplete) = collector.next(connection) {
            let mut restored = Vec::new();
            let copy =
                |index: usize, to: &mut [u8]| connection.copy_segment(&incomplete.block, index, to);
            decoder
                .restore(&incomplete, copy, |index, text| restored.push((index, Box::from(text))));
            has_restored |= !restored.is_empty();
            for (index, text) in restored {
                let (seq, _) = incomplete.block.segment(index);
                connection.restore(now, seq, Buffer::Owned(text));
            }
        }
        if has_restored {
            Cell::read_out(inner);
        }
        has_restored
    }
}

/// Maximum number of datagrams that wait for a connection.
const MOST_WAITING: usize = 256;
