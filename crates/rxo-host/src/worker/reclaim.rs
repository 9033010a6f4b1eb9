//! Shrinks buffers that have grown, while there is too little memory for new connections.
//!
//! A pass visits all connections, even idle ones. Free send memory is released at once. Receive memory is
//! released as the peer uses the window that was offered before the buffer shrank, because an offered window is
//! never reduced (RFC 9293, section 3.8.6). An idle connection has reserved no memory for data (`rests.rs`),
//! but its next data would reserve a buffer of the full size. Active connections grow again if there is memory.
//! A pass over all cells takes several rounds, and at least a second, so that an active connection keeps its
//! rate for several round trips.

use rxo_frame::{Duration, Instant};

use super::connections::Connections;

/// The position of the pass over all connections.
#[derive(Debug, Default)]
pub(super) struct Reclaim {
    /// The index of the connection with which the next round continues.
    next: u32,
    /// The earliest time of the next pass.
    again_at: Instant,
}

impl Reclaim {
    /// Halves the grown buffers of some connections if memory is short.
    pub(super) fn run<B: AsRef<[u8]>>(&mut self, connections: &mut Connections<B>, now: Instant) {
        if !connections.post.memory().is_short() || now < self.again_at {
            return;
        }
        let first = self.next;
        for place in first..first + CELLS_A_TURN {
            let Some(slot) = connections.slots.get(place) else { continue };
            let cell = &slot.cell;
            if cell.serve(|inner| cell.shrink(inner)).is_some() {
                // Serve the connection, because `serve` may have run its backlog.
                connections.touch(place);
            }
        }
        self.next = first + CELLS_A_TURN;
        if self.next as usize >= connections.slots.places() {
            *self = Self { next: 0, again_at: now + PASS };
        }
    }
}

const CELLS_A_TURN: u32 = 64;
const PASS: Duration = Duration::from_secs(1);
